#!/bin/sh
# Builds the npm package of gpunum: build/npm/ with gpunum.js, its declarations and three builds of the library, of which
# gpunum.js takes the one that the engine can run: with SIMD128, with its relaxed form, and for WebGPU. With `pack` also build/gpunum-VERSION.tgz, an installable file.
#
#   tools/web/build.sh [pack]
#   tools/web/build.sh objects   only compiles, into build/npm.work
#
# GPUNUM_CFLAGS of the environment comes last among the compiler's flags.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/tools/web/setup.sh"
PATH=$root/build/emscripten/bin:$PATH
out=$root/build/npm
work=$root/build/npm.work
flags="-std=c99 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -I$root/tools/gpunum -I$root -DNDEBUG -msimd128 ${GPUNUM_CFLAGS:-}"
gpu=-DGPUNUM_USE_WEBGPU
c_only="-sDEFAULT_TO_CXX=0 -sAUTO_NATIVE_LIBRARIES=0" # Emscripten's libraries of C++, GL and AL are not compiled then
mkdir -p "$out" "$work"
cd "$work"

printf '#include "gpunum.h"\n' >header.c
emcc $flags -E -P header.c -o header.i
python3 "$root/tools/web/make_js.py" header.i "$work"

# Loops as fast as can be, all else as small as can be. What is unchanged is not compiled again.
part() { # number, object, flags...
    number=$1 object=$2
    shift 2
    [ -e "$object" ] && [ -z "$(find "$root/tools/gpunum" "$root/tools/web" "$root/shaders_wgsl.h" -newer "$object" -name '*.[hc]' -o -newer "$object" -name build.sh)" ] && return
    printf '#define GPUNUM_IMPLEMENTATION\n#define GPUNUM_PART %s\n#include "gpunum.h"\n' "$number" >"part_$number.c"
    emcc $flags "$@" -c "part_$number.c" -o "$object"
}
part 1 host.o -Oz &
host=$!
part 2 simd.o -O2
part 2 relaxed.o -O2 -mrelaxed-simd
part 1 host_gpu.o -Oz $gpu
wait $host
[ "${1:-}" != objects ] || exit 0
emcc $flags -Os -c "$root/tools/web/web.c" -o web.o
emcc $flags -Os $gpu -c "$root/tools/web/web.c" -o web_gpu.o

# Passes that make it smaller by gzip, and as fast; the order of functions by the same wasm-opt, where it is at hand.
passes=-sBINARYEN_EXTRA_PASSES=--flatten,--rereloop,-Oz,-Oz
wasm_opt=$root/build/emscripten/root/usr/bin/wasm-opt
together() { # name, objects...
    kind=$1
    shift
    emcc -Oz -msimd128 $c_only $passes "$@" -o $kind.mjs --no-entry -sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=web,worker,node \
        -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sSTACK_SIZE=1MB -sFILESYSTEM=0 -sEXPORTED_FUNCTIONS=@exports.txt \
        -sEXPORTED_RUNTIME_METHODS=HEAPU8,HEAP32,HEAPU32,HEAP64,HEAPF64,UTF8ToString,stringToUTF8OnStack,stackSave,stackRestore,stackAlloc
    [ ! -x "$wasm_opt" ] || python3 "$root/tools/web/order_wasm.py" "$wasm_opt" $kind.wasm
}
for kind in simd relaxed; do
    together $kind host.o web.o $kind.o
    sed "s/$kind\.wasm/core.wasm/g" $kind.mjs >$kind.core.mjs
done
together core-gpu host_gpu.o web_gpu.o simd.o
cmp simd.core.mjs relaxed.core.mjs # one program serves both
cp simd.core.mjs "$out/core.mjs"
cp simd.wasm "$out/core.wasm"
cp core-gpu.mjs core-gpu.wasm "$out/"
cp relaxed.wasm "$out/core-relaxed.wasm"
cp calls.js gpunum.d.ts "$root/tools/web/gpunum.js" "$root/LICENSE" "$out/"
version=$(sed -n 's/^project(gpunum VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
cat >"$out/package.json" <<JSON
{
  "name": "gpunum",
  "version": "$version",
  "description": "NumPy arrays, FFT and training with autograd on WebGPU and WebAssembly",
  "type": "module",
  "main": "gpunum.js",
  "types": "gpunum.d.ts",
  "exports": { ".": { "types": "./gpunum.d.ts", "default": "./gpunum.js" } },
  "files": ["*.js", "*.mjs", "*.wasm", "*.d.ts", "LICENSE"],
  "sideEffects": false
}
JSON
for f in core.wasm core-relaxed.wasm core-gpu.wasm core.mjs core-gpu.mjs gpunum.js calls.js; do
    printf '%-18s %7d bytes, %6d by gzip -9\n' $f "$(wc -c <"$out/$f")" "$(gzip -9c "$out/$f" | wc -c)"
done
if [ "${1:-}" = pack ]; then
    cd "$out" && npm pack --silent --pack-destination "$root/build"
fi
