#!/usr/bin/env bash
if jq -e '.user_prompt | test("forget all rules"; "i")' > /dev/null; then
  >&2 echo "That prompt is not passed on."
  exit 2
fi
