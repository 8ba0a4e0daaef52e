#!/bin/sh
# Puts Dawn (WebGPU as a library), webgpu.h and Tint into build/webgpu.
#
# Only needed to work on the WebGPU layer and its kernels: the WGSL of kernels is checked in. They are packages of Debian,
# unpacked with the C library that they were built for. Nothing outside build/ is changed and root is not needed.
#
#   build/webgpu/bin             tint, glslang, spirv-opt
#   build/webgpu/root            the packages; CMake finds webgpu.h, Dawn and the C library in it (GPUNUM_WEBGPU)
#   build/webgpu/lavapipe.json   Vulkan on the CPU for Dawn: VK_ICD_FILENAMES
set -eu

suite=sid # the Debian release that has Dawn
root=$(cd "$(dirname "$0")/../.." && pwd)
dest=$root/build/webgpu
bin=$dest/bin

die() {
    echo "webgpu_setup.sh: $*" >&2
    exit 1
}

usable() {
    [ -s "$dest/lavapipe.json" ] && "$bin/tint" --help 2>&1 | grep -q wgsl && "$bin/glslang" --version >/dev/null 2>&1 &&
        "$bin/spirv-opt" --version >/dev/null 2>&1
}

usable && exit 0
rm -rf "$dest"
mkdir -p "$bin"
echo "fetches Dawn and its tools of Debian $suite into $dest"
"$root/tools/unpack_debian.sh" $suite "$dest" dawn-tools libwebgpu-dawn-dev glslang-tools spirv-tools mesa-vulkan-drivers ||
    die "no Dawn"
for tool in tint glslang spirv-opt spirv-val spirv-dis; do
    cat >"$bin/$tool" <<WRAPPER
#!/bin/sh
exec "$dest/run" "$dest/root/usr/bin/$tool" "\$@"
WRAPPER
    chmod +x "$bin/$tool"
done
usable || die "the unpacked tools do not run"
