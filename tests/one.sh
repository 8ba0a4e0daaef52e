#!/bin/sh
# Builds what one test needs, unoptimised in build/one, and runs it: the way from a changed line to its test.
#
#   tests/one.sh array          on the CPU
#   tests/one.sh array vulkan   on lavapipe
set -eu
[ $# -gt 0 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/one
case $1 in fuzz.*) target=fuzz_${1#fuzz.} ;; *) target=test_$1 ;; esac
if [ ! -f "$build/build.ninja" ]; then
    launcher=
    ! command -v ccache >/dev/null || launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O0 \
        -DGPUNUM_WARNINGS_AS_ERRORS=ON $launcher >/dev/null
fi
cmake --build "$build" --target "$target"
cd "$build"
ctest --output-on-failure --no-tests=error -R "^$1\\.${2:-cpu}\$"
