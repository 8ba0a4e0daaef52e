#!/bin/sh
# Installs build folder $1 into a scratch prefix and builds a user's project with find_package.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$1" --prefix "$tmp/prefix" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
mkdir "$tmp/app"
cat >"$tmp/app/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(gpunum REQUIRED)
add_executable(app app.c)
target_link_libraries(app PRIVATE gpunum::gpunum)
TEXT
cat >"$tmp/app/app.c" <<'TEXT'
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
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
