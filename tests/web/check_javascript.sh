#!/bin/sh
# Builds the npm package, unpacks what `npm pack` made of it, and tests that in node. Prints what it weighs.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
GPUNUM_CFLAGS=-Werror "$root/tools/web/build.sh" pack
rm -rf package
tar -xzf "$root"/build/gpunum-[0-9]*.tgz
GN_PACKAGE=$PWD/package "$root/build/emscripten/bin/node" --expose-gc --test "$root/tests/web/test_gpunum.mjs"
# Programs that wait for a GPU, by JSPI and by Asyncify: check_pages.mjs runs them in a page, and node with a device that copies.
work=$root/build/npm.work
node=$root/build/emscripten/bin/node
c_only="-sDEFAULT_TO_CXX=0 -sAUTO_NATIVE_LIBRARIES=0" # as in build.sh
build() {
    "$root/build/emscripten/bin/emcc" -std=c99 -I"$root/tools/gpunum" -O1 -msimd128 $c_only -sALLOW_MEMORY_GROWTH -sSTACK_SIZE=1MB -sEXIT_RUNTIME "$@"
}
jspi=$("$node" -p "'Suspending' in WebAssembly ? '' : '--experimental-wasm-jspi'")
for how in JSPI ASYNCIFY; do
    build -s$how -sMODULARIZE -sEXPORT_ES6 "$root/tests/web/wait.c" "$work/host_gpu.o" "$work/simd.o" -o "$work/wait_$how.mjs"
    build -s$how --pre-js "$root/tests/web/copies.js" "$root/tests/web/wait_copies.c" "$work/host_gpu.o" "$work/simd.o" -o copies.js
    if [ $how = ASYNCIFY ] || [ "$("$node" $jspi -p "'Suspending' in WebAssembly")" = true ]; then # which node 22 has not
        [ "$("$node" $jspi copies.js)" = "1 1 0 0 1 1 999" ]
    fi
done
# Worker threads of a program in C; check_pages.mjs has those of gpunum.js in a page.
build -pthread -sPTHREAD_POOL_SIZE=4 -Wno-pthreads-mem-growth "$root/tests/web/threads.c" "$work/host_threads.o" "$work/simd.o" -o threads.js
"$node" threads.js
# What a page downloads, and what the linker leaves of the library in a program that uses a corner of it. Emscripten and Binaryen are
# the newest there are and give other sizes from day to day: what was measured and near one in a hundred more is allowed.
weighs() { # name, file, most
    have=$(gzip -9c "$2" | wc -c)
    echo "$1: $have bytes by gzip, of $3 at the most"
    [ "$have" -le "$3" ]
}
weighs "core.wasm" package/core.wasm 331000
weighs "core-relaxed.wasm" package/core-relaxed.wasm 331000
weighs "core-gpu.wasm" package/core-gpu.wasm 508000
weighs "core.mjs" package/core.mjs 7250
weighs "gpunum.js" package/gpunum.js 14150
emcc() {
    "$root/build/emscripten/bin/emcc" -std=c99 -I"$root/tools/gpunum" -DNDEBUG -msimd128 -Oz "$@"
}
[ -e small.o ] && [ -z "$(find "$root/tools/gpunum" -newer small.o -name '*.h')" ] || emcc -c "$work/part_2.c" -o small.o
emcc -DGPUNUM_PART=0 "$root/tests/web/corner.c" "$work/host.o" small.o $c_only -sMALLOC=emmalloc -sALLOW_MEMORY_GROWTH -sSTACK_SIZE=1MB -o corner.js
[ "$("$root/build/emscripten/bin/node" corner.js)" = 66 ]
weighs "a corner of it" corner.wasm 59100
emcc --no-entry $c_only -sALLOW_MEMORY_GROWTH -sSTACK_SIZE=1MB -sFILESYSTEM=0 -sEXPORTED_FUNCTIONS=@"$work/exports.txt" "$work/host.o" "$work/web.o" small.o -o small.js \
    -sBINARYEN_EXTRA_PASSES=--flatten,--rereloop,-O1,-Oz
wasm_opt=$root/build/emscripten/root/usr/bin/wasm-opt
[ ! -x "$wasm_opt" ] || python3 "$root/tools/web/order_wasm.py" "$wasm_opt" small.wasm
weighs "the whole library, -Oz" small.wasm 297500
# A stack that is too small is told, and not written beyond.
emcc -DGPUNUM_PART=0 $c_only -O1 -sSTACK_SIZE=64KB "$root/tests/web/stack.c" "$work/host.o" small.o -o stack.js
"$root/build/emscripten/bin/node" stack.js
# All in one file compiles as well.
emcc -Wall -Wextra -Werror -fsyntax-only "$root/tests/web/stack.c"
