#!/bin/bash
FILE=$(jq -r '.tool_input.file_path // .tool_input.path // empty')
[ -z "$FILE" ] && exit 0
case "$(basename "$FILE")" in
  .env|.env.*|*.pem|id_rsa) echo "$FILE holds secrets" >&2; exit 2 ;;
esac
case "$FILE" in /*) ;; *) echo "expected an absolute path, got $FILE" >&2; exit 2 ;; esac
