#!/usr/bin/env bash
# The folders of src/ see each other in one direction only:
#
#   chess <- nn <- search <- arena <- app;  learn sees chess and nn.
#
# app may include learn/data_*.h, and app/train_main.cpp all of learn. LibTorch is for nn/torch_* and for learn but its
# data_* files; CLI11 and Boost are for app; nlohmann_json for nn, learn and app. Includes are rooted at src/, and no
# files include each other in a circle. All folders share one include root, so the compiler cannot hold this.
#
#   include_direction.sh [SRC]      prints each offending line; without SRC it checks this checkout, and itself first
set -euo pipefail

check() { # the folder src/
  (cd "$1" && find . -type f \( -name '*.h' -o -name '*.cpp' \) | sed 's|^\./||' | LC_ALL=C sort |
    xargs -r awk '
  function bad(why) { printf "src/%s:%d: %s    %s\n", FILENAME, FNR, why, $0; offences++ }
  function needs_torch(file) { return file ~ /^nn\/torch_/ || (file ~ /^learn\// && file !~ /^learn\/data_/) }

  # The first circle through `file`, reported once.
  function walk(file, trail,    n, i, next_ones) {
    if (state[file] == "open") {
      printf "src: a circle of includes:%s %s\n", substr(trail, index(trail, " " file " ")), file
      offences++
      return
    }
    if (state[file] == "done") return
    state[file] = "open"
    n = split(includes[file], next_ones, " ")
    for (i = 1; i <= n; i++) walk(next_ones[i], trail " " file " ")
    state[file] = "done"
  }

  BEGIN {
    sees["chess"] = " chess "
    sees["nn"] = " chess nn "
    sees["learn"] = " chess nn learn "
    sees["search"] = " chess nn search "
    sees["arena"] = " chess nn search arena "
    sees["app"] = " chess nn search arena app "
  }
  FNR == 1 {
    folder = FILENAME
    sub(/\/.*/, "", folder)
    if (!(folder in sees)) bad("a folder that is not in the list:")
  }
  /^[ \t]*#[ \t]*include[ \t]*"/ {
    target = $0
    sub(/^[^"]*"/, "", target)
    sub(/".*/, "", target)
    includes[FILENAME] = includes[FILENAME] " " target
    from = target
    sub(/\/.*/, "", from)
    if (!(from in sees) || from == target) { bad("not rooted at src/:"); next }
    allowed = index(sees[folder], " " from " ")
    if (folder == "app" && target ~ /^learn\/data_/) allowed = 1
    if (FILENAME == "app/train_main.cpp") allowed = 1
    if (!allowed) bad(folder " must not see " from ":")
    else if (needs_torch(target) && !needs_torch(FILENAME) && FILENAME != "app/train_main.cpp")
      bad("would bring LibTorch into a file that is built without it:")
  }
  /^[ \t]*#[ \t]*include[ \t]*</ {
    target = $0
    sub(/^[^<]*</, "", target)
    if (target ~ /^(torch|ATen|c10|caffe2)\// && !needs_torch(FILENAME)) bad("LibTorch outside nn/torch_* and learn:")
    if (target ~ /^CLI\// && folder != "app") bad("CLI11 outside app:")
    if (target ~ /^boost\// && folder != "app") bad("Boost outside app:")
    if (target ~ /^nlohmann\// && folder !~ /^(nn|learn|app)$/) bad("nlohmann_json outside nn, learn and app:")
  }
  END {
    for (file in includes) walk(file, "")
    exit offences > 0
  }')
}

if [[ $# -gt 0 ]]; then
  check "$1"
  exit
fi

# The check itself: each of these lines, alone in an otherwise good tree, is an offence.
fixture=$(mktemp -d)
trap 'rm -rf "$fixture"' EXIT
good() { # a tree in which all is well
  rm -rf "$fixture/src"
  mkdir -p "$fixture"/src/{chess,nn,search,learn,arena,app}
  printf '#include <vector>\n' >"$fixture/src/chess/a.h"
  printf '#include "chess/a.h"\n#include <nlohmann/json.hpp>\n' >"$fixture/src/nn/a.h"
  printf '#include <torch/torch.h>\n#include "nn/a.h"\n' >"$fixture/src/nn/torch_a.cpp"
  printf '#include "nn/a.h"\n' >"$fixture/src/search/a.h"
  printf '#include <torch/torch.h>\n#include "learn/data_a.h"\n' >"$fixture/src/learn/a.h"
  printf '#include "nn/a.h"\n' >"$fixture/src/learn/data_a.h"
  printf '#include "search/a.h"\n' >"$fixture/src/arena/a.h"
  printf '#include <CLI/CLI.hpp>\n#include "arena/a.h"\n#include "learn/data_a.h"\n' >"$fixture/src/app/a.cpp"
  printf '#include "learn/a.h"\n' >"$fixture/src/app/train_main.cpp"
}
good
check "$fixture/src" || { echo "the check refuses a good tree"; exit 1; }
while IFS='|' read -r file line; do
  good
  printf '%s\n' "$line" >>"$fixture/src/$file"
  if check "$fixture/src" >/dev/null; then
    echo "the check does not notice in $file: $line"
    exit 1
  fi
done <<'OFFENCES'
chess/a.h|#include "nn/a.h"
nn/a.h|#include "search/a.h"
nn/a.h|#include "learn/data_a.h"
search/a.h|#include "arena/a.h"
search/a.h|#include "learn/data_a.h"
learn/a.h|#include "search/a.h"
arena/a.h|#include "app/b.h"
app/a.cpp|#include "learn/a.h"
app/a.cpp|#include "nn/torch_a.h"
nn/a.h|#include "nn/torch_a.h"
learn/data_a.h|#include "learn/a.h"
search/a.h|  #  include <torch/types.h>
app/a.cpp|#include <ATen/ATen.h>
learn/data_a.h|#include <torch/torch.h>
nn/a.h|#include <CLI/CLI.hpp>
arena/a.h|#include <boost/asio.hpp>
chess/a.h|#include <nlohmann/json.hpp>
chess/a.h|#include "a.h"
chess/a.h|#include "../chess/b.h"
chess/a.h|#include "chess/a.h"
OFFENCES
good
printf '#include "chess/c.h"\n' >"$fixture/src/chess/b.h"
printf '#include "chess/b.h"\n' >"$fixture/src/chess/c.h"
if check "$fixture/src" >/dev/null; then echo "the check does not notice a circle"; exit 1; fi

check "$(dirname "$(readlink -f "$0")")/../src"
