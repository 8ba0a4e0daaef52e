#!/bin/sh
# The test command: sets up what is missing, builds, runs every test and check.
#
#   tests/run.sh                     every test and check
#   tests/run.sh -R array            arguments go to CTest
#   GPUNUM_CHECKS=OFF tests/run.sh   without the slow checks: compile matrix, clang, sanitizers, valgrind
#
# Works on a fresh clone; what it builds stays in build/test/ for the next time.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/test
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
export CTEST_OUTPUT_ON_FAILURE=1

echo "== set-up"
"$root/tools/setup.sh" test
mkdir -p "$build"
"$root/tools/shader_tools.sh"

echo "== build"
log=$build/build.log
{ cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O2 \
    -DGPUNUM_WARNINGS_AS_ERRORS=ON -DGPUNUM_CHECKS="${GPUNUM_CHECKS:-ON}" &&
    cmake --build "$build" --parallel "$jobs"; } >"$log" 2>&1 || { cat "$log"; exit 1; }
grep -i 'warning' "$log" || true

echo "== tests"
cd "$build"
status=0
{ ctest --parallel "$jobs" --no-tests=error "$@" || echo "exit status $?"; } 2>&1 | tee ctest.log
# The summary comes last, after CTest's list of failures and of times.
grep -q '^exit status' ctest.log && status=1
grep 'tests passed' ctest.log | tail -n 1
exit $status
