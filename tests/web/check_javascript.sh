#!/bin/sh
# Builds the npm package, unpacks what `npm pack` made of it, and tests that in node. Prints what it weighs.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/tools/web/build.sh" pack
rm -rf package
tar -xzf "$root"/build/gpunum-[0-9]*.tgz
GN_PACKAGE=$PWD/package "$root/build/emscripten/bin/node" --expose-gc --test "$root/tests/web/test_gpunum.mjs"
# What a page downloads. The library as a whole may weigh so much; see the table in tools/gpunum/README.md.
most=280000
have=$(gzip -9c package/core.wasm | wc -c)
[ "$have" -le $most ] || { echo "core.wasm is $have bytes by gzip, of $most"; exit 1; }
