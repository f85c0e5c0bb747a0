#!/usr/bin/env bash
# The generators are compiled for processors newer than the one the program may run on, so they must not leave out-of-line
# copies of inline functions behind: the linker keeps one copy for all, and an older processor would stumble over it.
#
#   no_shared_inlines.sh OBJECT...      names each such function
set -euo pipefail
status=0
for object in "$@"; do
  [[ -s $object ]] || { echo "no such object: $object"; exit 1; }
  symbols=$(nm -C --defined-only "$object")
  [[ $symbols == *MovegenTable* || $symbols == *kMovegen* ]] || { echo "$object: has no generator"; exit 1; }
  if shared=$(grep -E '^[0-9a-f]+ [WVu] ' <<<"$symbols" | grep -v 'typeinfo\|DW.ref'); then
    printf '%s:\n%s\n' "$object" "$shared"
    status=1
  fi
done
exit $status
