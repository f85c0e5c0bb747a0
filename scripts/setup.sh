# What ./play and ./test share: packages, configuring, building. Sourced by them, from the root of the checkout.
# Quiet: everything long goes to a log in build/, a progress line to the terminal, and a failure is one line.

set -euo pipefail
mkdir -p build

# Playing needs these. A command may come from anywhere (a newer node, say); its package is asked for only if the command
# is missing. make is for g++, which without it links on one core. Each library is named in CMakeLists.txt, with its user.
play_commands=(g++ make cmake ninja:ninja-build pkg-config node:nodejs npm)
play_packages=(libexpected-dev libfmt-dev libzstd-dev libzip-dev zlib1g-dev libprotobuf-dev nlohmann-json3-dev libcli11-dev libboost-dev)

die() {
  clear_progress
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit 1
}

# One line that is overwritten on a terminal; elsewhere it is printed only when `milestone` (the second argument) changes.
last_milestone=''
progress() {
  if [[ -t 2 ]]; then
    printf '\r\033[K%.*s' "$(($(tput cols 2>/dev/null || echo 80) - 1))" "$1" >&2
  elif [[ "${2-$1}" != "$last_milestone" ]]; then
    last_milestone="${2-$1}"
    printf '%s\n' "$1" >&2
  fi
}
clear_progress() { if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi; }

# The line of a log that says most: the first compiler, CMake, apt or npm error, or else the last line.
error_in() {
  local line
  line=$(grep -m1 -E '(^|[ :])([Ff]atal )?error[: ]|^E: |^CMake Error|npm ERR!' "$1" | tr -d '\r' || true)
  [[ "$line" == 'CMake Error'* ]] && line=$(grep -m1 -A3 '^CMake Error' "$1" | tr -s ' \n' ' ')
  [[ -n "$line" ]] || line=$(grep -v '^[[:space:]]*$' "$1" | tail -n 1 || true)
  printf '%s' "${line:-no output}"
}

# missing_packages "command[:package]..." package...: those that apt should install.
missing_packages() {
  local entry package installed
  for entry in $1; do
    command -v "${entry%%:*}" >/dev/null || printf '%s\n' "${entry##*:}"
  done
  shift
  [[ $# -gt 0 ]] || return 0
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qx "$package installed" <<<"$installed" || printf '%s\n' "$package"
  done
}

# install_missing "commands" package...: by apt, as root or through sudo, without a question.
install_missing() {
  local missing as_root=() log=build/apt.log
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    missing=$(for entry in $1; do command -v "${entry%%:*}" >/dev/null || printf '%s ' "${entry##*:}"; done)
    [[ -z "$missing" ]] || die "there is no apt here; please install, by Debian's names: $missing${*:2}"
    return 0 # configuring says if a library is not there
  fi
  missing=$(missing_packages "$@" | tr '\n' ' ')
  [[ -n "$missing" ]] || return 0
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || die "please install as root: apt-get install $missing"
    if sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    elif [[ -t 0 ]]; then
      printf 'To install %s\n' "$missing" >&2
      as_root=(sudo) # asks for the password itself
      sudo -v || die "please install as root: apt-get install $missing"
    else
      die "please install as root: apt-get install $missing"
    fi
  fi
  local apt=(${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
  local line kind percent _
  progress "installing $missing(the log is $log)"
  "${apt[@]}" update >"$log" 2>&1 </dev/null || true # a broken third-party list need not matter: install will tell
  # apt tells its progress in lines among its output.
  # shellcheck disable=SC2086 # a list of words
  "${apt[@]}" -o APT::Status-Fd=1 install --no-install-recommends $missing 2>&1 </dev/null | {
    while IFS= read -r line; do
      case $line in
        dlstatus:* | pmstatus:*)
          IFS=: read -r kind _ percent _ <<<"$line"
          [[ $kind == dlstatus ]] && kind='fetching' || kind='installing'
          progress "$kind what is missing: ${percent%%.*} %" "$kind ${percent%?.*}"
          ;;
        *) printf '%s\n' "$line" >>"$log" ;;
      esac
    done
  } || die "apt could not install $missing($log: $(error_in "$log"))"
  clear_progress
}

# The instruction set: x86-64-v3 (which brings PEXT) where the processor has it (these three never come without the rest),
# but for AMD's before Zen 3 (family 25), whose PEXT is slow.
has_x86_64_v3() {
  local flags flag
  flags=" $(grep -m1 '^flags' /proc/cpuinfo 2>/dev/null || true) "
  for flag in avx2 bmi2 fma; do
    [[ "$flags" == *" $flag "* ]] || return 1
  done
  ! awk -F ': *' '/^vendor_id/ { vendor = $2 } /^cpu family/ { family = $2; exit }
                  END { exit !(vendor ~ /^(AuthenticAMD|HygonGenuine)$/ && family < 25) }' /proc/cpuinfo
}

# Whether clang++ is here with its libFuzzer, which is a package of its own.
has_libfuzzer() {
  printf 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer,address,undefined -x c++ - -o build/has_libfuzzer 2>/dev/null
}

# The name of that package, if apt knows one for this clang++.
libfuzzer_package() {
  local version
  version=$(clang++ -dumpversion 2>/dev/null | cut -d. -f1)
  if apt-cache show "libclang-rt-$version-dev" >/dev/null 2>&1; then echo "libclang-rt-$version-dev"; fi
}

# As many compilers as there are cores, and no more than memory allows: the largest files take 1.5 GB.
parallel_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
  ((memory >= 1)) || memory=1
  echo $((memory < cores ? memory : cores))
}

# configure PRESET FOLDER OPTION...: only when there is something to configure, since ninja notices all other changes.
configure() {
  local preset=$1 folder=$2 log=$2.configure.log
  shift 2
  if [[ -f $folder/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$folder/CMakeCache.txt"; then
    rm -rf "$folder" # the checkout has moved
  fi
  [[ -f $folder/build.ninja && "$*" == "$(cat "$folder/configured_with" 2>/dev/null)" &&
    $folder/build.ninja -nt CMakePresets.json ]] && return 0
  progress "configuring $folder"
  cmake --preset "$preset" -B "$folder" "$@" >"$log" 2>&1 </dev/null ||
    die "configuring failed ($log: $(error_in "$log"))"
  printf '%s\n' "$*" >"$folder/configured_with"
  clear_progress
}

# build FOLDER TARGET...
build() {
  local folder=$1 log=$1.build.log line status
  shift
  NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "$(parallel_jobs)" "$@" 2>&1 </dev/null | tee "$log" | {
    while IFS= read -r line; do
      if [[ "$line" =~ ^\[([0-9]+)/([0-9]+)\]\ [^R] ]]; then # not "Re-checking globbed directories"
        progress "building $folder: ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}" $((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      fi
    done
    clear_progress
  } || status=$?
  [[ -z "${status-}" ]] || die "the build failed ($log: $(error_in "$log"))"
}
