#!/bin/sh
# Puts a lavapipe that compiles kernels in a third of the time into build/lavapipe, where the host's is older than Mesa 25.
#
#   build/lavapipe/lavapipe.json   the driver's manifest
#   build/lavapipe/run             runs a program with the C library that the driver needs
#
# Debian 13's packages, with its Vulkan loader and validation layer, unpacked. CMake takes them where they are. Nothing
# outside build/ is changed and root is not needed.
set -eu

need=25      # lowest version of Mesa
suite=trixie # the Debian release that has it
root=$(cd "$(dirname "$0")/.." && pwd)
dest=$root/build/lavapipe

[ ! -s "$dest/lavapipe.json" ] || exit 0
host=$(dpkg-query -W -f '${Version}' mesa-vulkan-drivers 2>/dev/null | sed 's/\..*//')
[ "${host:-0}" -lt $need ] || exit 0
echo "fetches lavapipe of Debian $suite into $dest (150 MB)"
"$root/tools/unpack_debian.sh" $suite "$dest" mesa-vulkan-drivers libvulkan1 vulkan-validationlayers
