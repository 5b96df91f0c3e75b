#!/bin/sh
# Means to block, and does not: only 2 blocks.
echo "BLOCKED: not on a Friday" >&2
exit 1
