#!/bin/sh
# Written for bash, run by whatever sh is.
words=(rm mkfs dd)
for word in "${words[@]}"; do :; done
exit 0
