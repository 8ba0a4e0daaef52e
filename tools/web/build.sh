#!/bin/sh
# Builds the npm package of gpunum: build/npm/ with gpunum.js, its declarations and five builds of the library, of which
# gpunum.js takes the one that the engine can run: with SIMD128, with its relaxed form, both with worker threads as well, and
# for WebGPU. With `pack` also build/gpunum-VERSION.tgz, an installable file.
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
atomics="-matomics -mbulk-memory" # what memory that threads share wants of every object; the same code without it
part 1 host.o -Oz &
host=$!
part 2 simd.o -O2 $atomics
part 2 relaxed.o -O2 -mrelaxed-simd $atomics
part 1 host_gpu.o -Oz $gpu
wait $host
[ "${1:-}" != objects ] || exit 0
part 1 host_threads.o -Oz -pthread
emcc $flags -Os -I"$work" -c "$root/tools/web/web.c" -o web.o
emcc $flags -Os $gpu -I"$work" -c "$root/tools/web/web.c" -o web_gpu.o
emcc $flags -Os -pthread -I"$work" -c "$root/tools/web/web.c" -o web_threads.o

# Passes that make it smaller by gzip, and as fast; the order of functions by the same wasm-opt, where it is at hand.
passes=-sBINARYEN_EXTRA_PASSES=--flatten,--rereloop,-O1,-Oz
wasm_opt=$root/build/emscripten/root/usr/bin/wasm-opt
runtime=HEAPU8,HEAP32,HEAPU32,HEAP64,HEAPF64,UTF8ToString,stackSave,stackRestore,stackAlloc
link() { # name, objects...
    name=$1
    shift
    emcc -msimd128 $c_only "$@" -o $name.mjs --no-entry -sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=web,worker,node \
        -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sSTACK_SIZE=1MB -sFILESYSTEM=0 -sEXPORTED_FUNCTIONS=@exports.txt
}
together() { # as link
    link "$@" -Oz $passes -sEXPORTED_RUNTIME_METHODS=$runtime
    [ ! -x "$wasm_opt" ] || python3 "$root/tools/web/order_wasm.py" "$wasm_opt" $name.wasm
}
both() { # how, name, objects but for the pass...
    how=$1 base=$2
    shift 2
    $how $base-simd "$@" simd.o
    $how $base-relaxed "$@" relaxed.o
    for kind in simd relaxed; do
        sed "s/$base-$kind\.\(m\{0,1\}js\|wasm\)/$base.\1/g" $base-$kind.mjs >$base-$kind.one.mjs
    done
    cmp $base-simd.one.mjs $base-relaxed.one.mjs # one program serves both
    cp $base-simd.one.mjs "$out/$base.mjs"
    cp $base-simd.wasm "$out/$base.wasm"
    cp $base-relaxed.wasm "$out/"
}
both together core host.o web.o
together core-gpu host_gpu.o web_gpu.o simd.o
cp core-gpu.mjs core-gpu.wasm "$out/"
# A tenth larger than can be, and linked in a third of the time.
both link core-threads host_threads.o web_threads.o -O2 -pthread -Wno-pthreads-mem-growth '-sPTHREAD_POOL_SIZE=Module["gnWorkers"]' \
    -sEXPORTED_RUNTIME_METHODS=$runtime,wasmMemory,PThread
python3 "$root/tools/web/pack_glue.py" "$out"/core*.mjs
cp calls.js gpunum.d.ts "$root/LICENSE" "$root/tools/web/README.md" "$out/"
sed '1!{/^ *\/\//d;}' "$root/tools/web/gpunum.js" >"$out/gpunum.js" # comments are a fifth of what a page would download
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
  "files": ["*.js", "*.mjs", "*.wasm", "*.d.ts", "LICENSE", "README.md"],
  "sideEffects": false
}
JSON
for f in core.wasm core-relaxed.wasm core-gpu.wasm core-threads.wasm core-threads-relaxed.wasm core.mjs core-gpu.mjs core-threads.mjs gpunum.js calls.js; do
    printf '%-25s %7d bytes, %6d by gzip -9\n' $f "$(wc -c <"$out/$f")" "$(gzip -9c "$out/$f" | wc -c)"
done
if [ "${1:-}" = pack ]; then
    cd "$out" && npm pack --silent --pack-destination "$root/build"
fi
