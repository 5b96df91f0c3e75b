#!/bin/bash
echo "Today's branch: feature/waves"
echo "Open tickets: 3"
