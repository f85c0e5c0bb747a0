#!/bin/sh
# Our PGN reader against Debian's pgn-extract on one file, run in turns on one core.
#   bench/pgn_versus_pgn_extract.sh build/release/bin/bench games.pgn [rounds]
# Each reads and replays every game once. pgn-extract is run twice: checking only (-r), which is its fastest, and
# writing what it matched to /dev/null. Times are user + system seconds of the process, so that a busy machine counts little.
set -eu
[ $# -ge 2 ] || { sed -n '3p' "$0" >&2; exit 2; }
bench=$1 file=$2 rounds=${3:-5}
extract=$(command -v pgn-extract || echo /usr/games/pgn-extract)
times=$(mktemp)
trap 'rm -f "$times"' EXIT
cpu_of() { # name, command...
  name=$1; shift
  seconds=$( { TIMEFORMAT='%U %S'; export TIMEFORMAT; bash -c 'time "$@" >/dev/null 2>&1' _ "$@"; } 2>&1 | awk '{print $1 + $2}')
  echo "$name $seconds" >>"$times"
}
round=0
while [ "$round" -lt "$rounds" ]; do
  PGN_FILE=$file cpu_of ours taskset -c 0 "$bench" --benchmark_filter=pgn_all_games --benchmark_min_time=0.001
  cpu_of check taskset -c 0 "$extract" -s --quiet -r "$file"
  cpu_of write taskset -c 0 "$extract" -s --quiet "$file" -o /dev/null
  round=$((round + 1))
done
median() { grep "^$1 " "$times" | awk '{print $2}' | sort -n | awk '{v[NR] = $1} END {print (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2}'; }
ours=$(median ours) check=$(median check) write=$(median write)
awk -v o="$ours" -v c="$check" -v w="$write" -v r="$rounds" 'BEGIN {
  printf "median of %d, CPU seconds: ours %.3f, pgn-extract -r %.3f (%.1fx), pgn-extract -o /dev/null %.3f (%.1fx)\n", r, o, c, c / o, w, w / o }'
