#!/bin/sh
# Builds everything in folder $1 with the CMake options that follow, and runs the tests there.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
shift
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
launcher=
! command -v ccache >/dev/null || launcher="-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
cmake -S "$root" -B "$folder" -G Ninja $launcher "$@" >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
cmake --build "$folder" --parallel "$jobs" >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
cd "$folder"
ctest --output-on-failure --parallel "$jobs"
