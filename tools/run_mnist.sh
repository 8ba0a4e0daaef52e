#!/bin/sh
# The main job: sets up what is missing, fetches MNIST, builds examples/mnist.c and trains.
#
#   tools/run_mnist.sh [options of the example, such as --backend cpu --epochs 5]
#
# Says what it installs, fetches and compiles before it does. But for packages of the system it leaves nothing
# outside build/ and data/ of this folder.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/run
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

echo "== set-up"
"$root/tools/setup.sh" run
echo "== data"
data=$("$root/tools/fetch_mnist.sh")
echo "the four files are in $data"
echo "== build"
mkdir -p "$build"
mnist=$(find "$build" -name mnist -type f | head -n 1)
[ -n "$mnist" ] || echo "compiles the library and examples/mnist.c into $build, once: about a minute on 2 cores"
{ cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DGPUNUM_BUILD_TESTS=OFF -DGPUNUM_BUILD_TOOLS=OFF &&
    cmake --build "$build" --parallel "$jobs" --target mnist; } >"$build/build.log" 2>&1 ||
    { cat "$build/build.log" >&2; exit 1; }
mnist=$(find "$build" -name mnist -type f | head -n 1)
echo "== training: $mnist --data $data --save $build --cache $build $*"
exec "$mnist" --data "$data" --save "$build" --cache "$build" "$@"
