#!/bin/bash
# stdin is the event as JSON. Exit code 2 blocks the call; the model gets stderr as the reason.
if grep -q 'rm -rf'; then
  echo "rm -rf is not allowed here" >&2
  exit 2
fi
