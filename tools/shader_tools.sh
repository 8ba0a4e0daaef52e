#!/bin/sh
# Puts glslang, spirv-val, spirv-dis and spirv-opt into build/shader-tools/bin.
#
# Only needed to change shaders: shaders.h is checked in. Cooperative matrices need glslang 15.
# The host's own tools are used when they are new enough. Otherwise Debian 13's packages are
# unpacked, with their C library, below build/shader-tools/ and run from there. They come from the
# mirror that apt is set up for already, and apt checks their signatures with the host's keys.
# Nothing outside build/ is changed and root is not needed. That release's Vulkan headers come
# along: tests/compile_matrix.sh compiles with them as well as with the host's.
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
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
    die "no glslang $need here, and no apt to fetch it with"
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
source=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI) $(SIGNED_BY)' \
    'Created-By: Packages' 2>/dev/null |
    awk -v c="$codename" '$1 == c || $1 == "stable" || $1 == "oldstable" { print; exit }')
[ -n "$source" ] || die "no Debian mirror in apt's sources"
mirror=$(echo "$source" | cut -d' ' -f2)
keys=$(echo "$source" | cut -d' ' -f3)
[ -n "$keys" ] || keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] && signed="[signed-by=$keys] " || signed=

echo "fetches glslang $need, SPIRV-Tools and Vulkan headers of Debian $suite into $dest (140 MB)"
apt=$dest/apt
rm -rf "$dest/root" "$apt"
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
private_apt install --download-only --no-install-recommends --yes glslang-tools spirv-tools \
    libvulkan-dev ||
    { cat "$apt/log" >&2; die "fetching the packages failed"; }
for deb in "$apt"/cache/archives/*.deb; do
    dpkg-deb -x "$deb" "$dest/root"
done

# An old host's loader cannot load the newer C library, so each tool runs through its own.
loader=$(find "$dest/root" -name 'ld-linux*.so.*' | head -n 1)
libs=$(find "$dest/root" -name 'libc.so.6' -exec dirname {} \; | head -n 1)
[ -n "$loader" ] && [ -n "$libs" ] || die "the unpacked packages have no C library"
for tool in glslang spirv-val spirv-dis spirv-opt; do
    [ -x "$dest/root/usr/bin/$tool" ] || die "the unpacked packages have no $tool"
    cat >"$bin/$tool" <<WRAPPER
#!/bin/sh
exec "$loader" --library-path "$libs" "$dest/root/usr/bin/$tool" "\$@"
WRAPPER
    chmod +x "$bin/$tool"
done
rm -rf "$apt"
usable || die "the unpacked tools do not run"
