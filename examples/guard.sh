#!/bin/bash
# stdin is the event as JSON. Exit code 2 blocks, and stderr is the reason that the model reads.
if grep -q 'rm -rf'; then
  echo "rm -rf is not allowed here" >&2
  exit 2
fi
