# What all fakes share: a clang-style driver that looks like mcc. Sourced, never run.
#
# Behind it is the real clang-14, or with FAKE_SDK=DIR the stand-in SDK's driver. Every job is taken
# from the real driver's -###, with the fake in the place of the cc1, so that what mccprobe replays
# comes back here: a fake misbehaves in `device_compile` or `driver_call`.
#
#   -mllvm -fake-fault   the one option of its own: from execution $FAULT_AT on the text GOOD in the
#                        object becomes BAD! (a miscompile that a limit switches off)
set -u
self=$(readlink -f "$0")
FAULT_AT=${FAKE_FAULT_AT:-20}
LIMIT_AT=${FAKE_LIMIT_AT:-10}   # the one limit at which a fake does its wrong thing
limit=none fault=no output=

real() {
  if [ -n "${FAKE_SDK:-}" ]; then "$FAKE_SDK/bin/mcc" "$@"; else clang-14 "$@"; fi
}

version_text() {
  echo "clang version 14.0.6"
  echo "mcc version ${FAKE_VERSION:-3.1.0} (a fake of mccprobe's tests)"
}

# Reads limit, fault and output out of a cc1 command line.
look() {
  previous=
  for argument in "$@"; do
    case $previous$argument in
      -mllvm-opt-bisect-limit=*) limit=${argument#*=} ;;
      -mllvm-fake-fault) fault=yes ;;
      -o*) [ "$previous" = -o ] && output=$argument ;;
    esac
    previous=$argument
  done
}

# The real cc1, without the option that only a fake knows.
cc1() {
  count=$#
  while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    if [ "$argument" = -mllvm ] && [ "$count" -gt 0 ] && [ "$1" = -fake-fault ]; then
      shift
      count=$((count - 1))
    else
      set -- "$@" "$argument"
    fi
  done
  real_cc1 "$@" || return
  [ -f "$output" ] || return 0 # a probe writes to /dev/null
  if [ "$fault" = yes ] && { [ "$limit" = none ] || [ "$limit" -lt 0 ] || [ "$limit" -ge "$FAULT_AT" ]; }; then
    LC_ALL=C sed -i 's/GOOD/BAD!/g' "$output"
  fi
}

real_cc1() {
  clang-14 "$@"
}

# A fake that misbehaves in the compile replaces this one.
device_compile() {
  cc1 "$@"
}

main() {
  case ${1:-} in
    --version) version_text; exit ;;
    -cc1)
      look "$@"
      device_compile "$@"
      exit ;;
  esac
  driver_call "$@"
}

# A fake that misbehaves in the driver replaces this one.
driver_call() {
  jobs=$(real -### "$@" 2>&1) || {
    echo "$jobs" >&2
    exit 1
  }
  jobs=$(printf '%s\n' "$jobs" | sed "s|^ \"[^\"]*\" \"-cc1\"| \"$self\" \"-cc1\"|")
  case " $* " in
    *" -### "*) printf '%s\n' "$jobs" >&2 ;;
    *)
      printf '%s\n' "$jobs" | grep '^ "' | while IFS= read -r job; do
        eval "$job" || exit
      done ;;
  esac
}
