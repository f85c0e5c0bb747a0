#!/usr/bin/env bash
# The chess library as others get it: installs it, compiles every installed header alone, and builds and runs examples/
# against it. That the library needs nothing of what only the program needs is seen by configuring it without.
#
#   installed_library.sh BUILD CXX ARCH FLAGS      a build folder; the compiler, -march option and other flags of that build
set -euo pipefail
build=$1 cxx=$2 arch=$3 flags=$4
root=$(dirname "$(readlink -f "$0")")/..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() {
  echo "$1" >&2
  exit 1
}
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2 && die "failed: $*"; }; }

quietly cmake --install "$build" --prefix "$work/prefix"
[[ $(find "$work/prefix" -name '*.h' | wc -l) == $(find "$root/src/chess" -name '*.h' ! -name '*_impl.h' | wc -l) ]] ||
  die "not every header of src/chess is installed"

quietly cmake -G Ninja -S "$root/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_CXX_FLAGS="$flags -march=x86-64 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror" \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
quietly cmake --build "$work/build"
diff - <("$work/build/sacrifices" "$root/examples/games.pgn") <<'EXPECTED' || die "the example prints something else"
21  Anderssen - Kieseritzky
15  Anderssen - Dufresne
10  Morphy - Duke Karl and Count Isouard
EXPECTED
# The library's instruction set comes last, so it holds; its warnings stay at home.
command=$(grep '"command"' "$work/build/compile_commands.json")
[[ "$command" == *" $arch"* && "${command##* -march=x86-64 }" == *" $arch"* ]] || die "users don't get $arch: $command"

# With just the compiler: what is included must be there, and order does not matter.
(cd "$work/prefix/include/tahl" && find chess -name '*.h') | while read -r header; do
  printf '#include "%s"\n#include "%s"\n' "$header" "$header" >"$work/alone.cpp"
  "$cxx" -std=c++20 "$arch" -Wall -Wextra -Werror -fsyntax-only \
    -I "$work/prefix/include/tahl" "$work/alone.cpp" || die "does not compile alone: $header"
done

without=()
for package in nlohmann_json CLI11 Boost Torch GTest benchmark; do without+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"); done
quietly cmake -G Ninja -S "$root" -B "$work/only" -DTAHL_CHESS_ONLY=ON -DCMAKE_CXX_COMPILER="$cxx" "${without[@]}"
