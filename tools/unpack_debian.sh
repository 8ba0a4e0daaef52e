#!/bin/sh
# Unpacks packages of another Debian release, with all that they need, into a folder: what this host has is too old.
#
#   tools/unpack_debian.sh SUITE FOLDER PACKAGE...
#
# They come from the mirror that apt is set up for already, and apt checks their signatures with the host's keys. Nothing
# outside FOLDER is changed and root is not needed. An old host's loader cannot load the newer C library:
#
#   FOLDER/root    the packages
#   FOLDER/libs    where their libraries are, a link
#   FOLDER/loader  the loader of their C library, a link
#   FOLDER/run     runs a program with that C library and these libraries
#
# and where Mesa's drivers are among them
#
#   FOLDER/lavapipe.json   Vulkan on the CPU for such a program: VK_DRIVER_FILES
set -eu

suite=$1
dest=$2
shift 2

die() {
    echo "unpack_debian.sh: $*" >&2
    exit 1
}

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || die "no apt to fetch packages with"
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
source=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI) $(SIGNED_BY)' 'Created-By: Packages' 2>/dev/null |
    awk -v c="$codename" '$1 == c || $1 == "stable" || $1 == "oldstable" { print; exit }')
[ -n "$source" ] || die "no Debian mirror in apt's sources"
mirror=$(echo "$source" | cut -d' ' -f2)
keys=$(echo "$source" | cut -d' ' -f3)
[ -n "$keys" ] || keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keys" ] && signed="[signed-by=$keys] " || signed=

apt=$dest/apt
rm -rf "$dest/root" "$apt" "$dest/libs" "$dest/loader" "$dest/run" "$dest/lavapipe.json"
mkdir -p "$dest/root" "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/etc"
: >"$apt/status" # an empty package database, so that apt fetches the whole closure
echo "deb $signed$mirror $suite main" >"$apt/etc/sources.list"
private_apt() {
    timeout 900 apt-get -qq -o Dir::Etc::sourcelist="$apt/etc/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::Etc::preferences=- -o Dir::Etc::preferencesparts=- \
        -o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" \
        -o Dir::Cache="$apt/cache" -o APT::Sandbox::User="$(id -un)" \
        -o APT::Update::Post-Invoke-Success::= -o Acquire::Languages=none \
        -o Acquire::Retries=3 "$@" >"$apt/log" 2>&1
}
private_apt update || { cat "$apt/log" >&2; die "the mirror has no $suite, or its keys are missing"; }
private_apt install --download-only --no-install-recommends --yes "$@" ||
    { cat "$apt/log" >&2; die "fetching the packages failed"; }
for deb in "$apt"/cache/archives/*.deb; do
    dpkg-deb -x "$deb" "$dest/root"
done
rm -rf "$apt"

loader=$(find "$dest/root" -name 'ld-linux*.so.*' | head -n 1)
libs=$(find "$dest/root" -name 'libc.so.6' -exec dirname {} \; | head -n 1)
[ -n "$loader" ] && [ -n "$libs" ] || die "the unpacked packages have no C library"
ln -s "$libs" "$dest/libs"
ln -s "$loader" "$dest/loader"
cat >"$dest/run" <<WRAPPER
#!/bin/sh
exec "$loader" --library-path "$libs" "\$@"
WRAPPER
chmod +x "$dest/run"
"$dest/run" /bin/true || die "the unpacked C library does not run"
[ ! -e "$libs/libvulkan_lvp.so" ] ||
    echo "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\": \"$libs/libvulkan_lvp.so\", \"api_version\": \"1.4.0\"}}" >"$dest/lavapipe.json"
