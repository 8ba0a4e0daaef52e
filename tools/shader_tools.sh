#!/bin/sh
# Puts glslang, spirv-val, spirv-dis and spirv-opt into build/shader-tools/bin.
#
# Only needed to change shaders: shaders.h is checked in. Cooperative matrices need glslang 15.
# The host's own tools are used when they are new enough. Otherwise Debian 13's packages are
# unpacked below build/shader-tools/ and run from there. Nothing outside build/ is changed and root
# is not needed. That release's Vulkan headers come along: tests/compile_matrix.sh compiles with
# them as well as with the host's.
set -eu

need=15        # lowest glslang major version
suite=trixie   # the Debian release that has it
root=$(cd "$(dirname "$0")/.." && pwd)
dest=$root/build/shader-tools
bin=$dest/bin

die() {
    echo "shader_tools.sh: $*" >&2
    echo "  Install glslang $need or newer and spirv-tools by hand (the Vulkan SDK has both)" >&2
    echo "  and put them on the PATH." >&2
    exit 1
}

# Major version of a glslang program, 0 if it does not run.
major() {
    "$1" --version 2>/dev/null | sed -n 's/^Glslang Version: [0-9]*:\([0-9]*\)\..*/\1/p' | grep . || echo 0
}

usable() {
    [ -x "$bin/glslang" ] && [ "$(major "$bin/glslang")" -ge $need ] &&
        "$bin/spirv-val" --version >/dev/null 2>&1 && "$bin/spirv-opt" --version >/dev/null 2>&1
}

usable && exit 0
rm -rf "$bin"
mkdir -p "$bin"

# 1. The host's own.
for name in glslang glslangValidator; do
    path=$(command -v $name) || continue
    [ "$(major "$path")" -ge $need ] || continue
    command -v spirv-val >/dev/null || break
    ln -s "$path" "$bin/glslang"
    for tool in spirv-val spirv-dis spirv-opt; do
        path=$(command -v $tool) && ln -s "$path" "$bin/$tool"
    done
    usable && exit 0
    rm -f "$bin"/*
done

# 2. Debian's packages, unpacked.
echo "fetches glslang $need, SPIRV-Tools and Vulkan headers of Debian $suite into $dest (140 MB)"
"$root/tools/unpack_debian.sh" $suite "$dest" glslang-tools spirv-tools libvulkan-dev || die "no glslang $need here, nor there"
for tool in glslang spirv-val spirv-dis spirv-opt; do
    [ -x "$dest/root/usr/bin/$tool" ] || die "the unpacked packages have no $tool"
    cat >"$bin/$tool" <<WRAPPER
#!/bin/sh
exec "$dest/run" "$dest/root/usr/bin/$tool" "\$@"
WRAPPER
    chmod +x "$bin/$tool"
done
usable || die "the unpacked tools do not run"
