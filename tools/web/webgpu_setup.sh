#!/bin/sh
# Puts Dawn (WebGPU as a library), webgpu.h and Tint into build/webgpu.
#
# Only needed to work on the WebGPU layer and its kernels: the WGSL of kernels is checked in. They are packages of Debian,
# unpacked with the C library that they were built for; they come from the mirror that apt is set up for already, and apt
# checks their signatures with the host's keys. Nothing outside build/ is changed and root is not needed.
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
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || die "no apt to fetch Dawn with"
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
source=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI) $(SIGNED_BY)' 'Created-By: Packages' 2>/dev/null |
    awk -v c="$codename" '$1 == c || $1 == "stable" || $1 == "oldstable" { print; exit }')
[ -n "$source" ] || die "no Debian mirror in apt's sources"
mirror=$(echo "$source" | cut -d' ' -f2)
keys=$(echo "$source" | cut -d' ' -f3)
[ -r "$keys" ] || keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] && signed="[signed-by=$keys] " || signed=

echo "fetches Dawn and its tools of Debian $suite into $dest"
apt=$dest/apt
mkdir -p "$dest/root" "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/etc"
: >"$apt/status" # an empty package database, so that apt fetches the whole closure
echo "deb $signed$mirror $suite main" >"$apt/etc/sources.list"
private_apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$apt/etc/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::Etc::preferences=- -o Dir::Etc::preferencesparts=- \
        -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
        -o Dir::Cache="$apt/cache" -o APT::Sandbox::User="$(id -un)" \
        -o APT::Update::Post-Invoke-Success::= -o Acquire::Languages=none \
        -o Acquire::Retries=3 "$@" >"$apt/log" 2>&1
}
private_apt update || { cat "$apt/log" >&2; die "the mirror has no $suite, or its keys are missing"; }
private_apt install --download-only --no-install-recommends --yes dawn-tools libwebgpu-dawn-dev glslang-tools \
    spirv-tools mesa-vulkan-drivers || { cat "$apt/log" >&2; die "fetching the packages failed"; }
for deb in "$apt"/cache/archives/*.deb; do
    dpkg-deb -x "$deb" "$dest/root"
done
rm -rf "$apt"

# They are newer than the host's C library, so each runs with its own.
loader=$(find "$dest/root" -name 'ld-linux*.so.*' | head -n 1)
libs=$(find "$dest/root" -name 'libc.so.6' -exec dirname {} \; | head -n 1)
[ -n "$loader" ] && [ -n "$libs" ] || die "the unpacked packages have no C library"
for tool in tint glslang spirv-opt spirv-val spirv-dis; do
    cat >"$bin/$tool" <<WRAPPER
#!/bin/sh
exec "$loader" --library-path "$libs" "$dest/root/usr/bin/$tool" "\$@"
WRAPPER
    chmod +x "$bin/$tool"
done
cat >"$dest/lavapipe.json" <<JSON
{"file_format_version": "1.0.0", "ICD": {"library_path": "$libs/libvulkan_lvp.so", "api_version": "1.4.0"}}
JSON
usable || die "the unpacked tools do not run"
