#!/bin/sh
# The main job: sets up what is missing, fetches MNIST, builds examples/mnist.c and trains.
#
#   tools/run_mnist.sh [options of the example, such as --backend cpu --epochs 5]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/run

"$root/tools/setup.sh" run
data=$("$root/tools/fetch_mnist.sh")
mkdir -p "$build"
{ cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DGPUNUM_BUILD_TESTS=OFF -DGPUNUM_BUILD_TOOLS=OFF &&
    cmake --build "$build" --target mnist; } >"$build/build.log" 2>&1 || { cat "$build/build.log" >&2; exit 1; }
mnist=$(find "$build" -name mnist -type f | head -n 1)
exec "$mnist" --data "$data" "$@"
