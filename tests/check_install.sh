#!/bin/sh
# Installs build folder $1 into a scratch prefix and builds a user's project with find_package and with pkg-config.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$1" --prefix "$tmp/first" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
mv "$tmp/first" "$tmp/prefix" # what is installed may be moved
mkdir "$tmp/app"
cat >"$tmp/app/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(gpunum REQUIRED)
add_executable(app impl.c app.c)
target_link_libraries(app PRIVATE gpunum::gpunum)
TEXT
cat >"$tmp/app/impl.c" <<'TEXT'
#define GPUNUM_IMPLEMENTATION
#include <gpunum.h>
TEXT
cat >"$tmp/app/app.c" <<'TEXT'
#include <gpunum.h>
int main(void) {
    gn_context *g = gn_open(NULL);
    gn_close(g);
    return g == NULL;
}
TEXT
cd "$tmp/app"
{ cmake -B build -DCMAKE_PREFIX_PATH="$tmp/prefix" && cmake --build build; } >"$tmp/log" 2>&1 ||
    { cat "$tmp/log"; exit 1; }
build/app
echo "find_package(gpunum) works"

command -v pkg-config >/dev/null || { echo "left out: no pkg-config"; [ -z "${GN_REQUIRE_ALL:-}" ]; exit; }
PKG_CONFIG_PATH=$(dirname "$(find "$tmp/prefix" -name gpunum.pc)")
export PKG_CONFIG_PATH
version=$(sed -n 's/^#define GPUNUM_VERSION \([0-9]*\).*/\1/p' "$tmp/prefix/include/gpunum.h")
[ "$(pkg-config --modversion gpunum)" = "$((version / 10000)).$((version / 100 % 100)).$((version % 100))" ] ||
    { echo "gpunum.pc has version $(pkg-config --modversion gpunum), gpunum.h $version"; exit 1; }
cc app.c "$(find build -name 'impl.c.o')" $(pkg-config --cflags --libs gpunum) -o app
./app
echo "pkg-config gpunum works"
