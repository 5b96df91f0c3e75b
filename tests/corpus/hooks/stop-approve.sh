#!/bin/sh
echo '{"decision": "approve"}'
