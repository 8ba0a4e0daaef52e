#!/bin/sh
# Compiles the header alone in every dialect, configuration and way of including it that is
# promised, with warnings as errors, and looks at the symbols of the result.
#
#   tests/compile_matrix.sh [FOLDER]   FOLDER holds gpunum.h and shaders.h; default: this repository
#
# What is not installed (clang, mingw-w64, Vulkan headers, volk) is left out, and said so; with GN_REQUIRE_ALL in the
# environment that is a failure.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(cd "${1:-$root}" && pwd)
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
# Relative from here on, so that a space in a path cannot split an option.
include=include
mkdir $include
cp "$folder/gpunum.h" "$folder/shaders.h" $include
failed=0
done=0
[ -z "${GPUNUM_COMPILERS_LOAD:-}" ] || export LD_PRELOAD="$GPUNUM_COMPILERS_LOAD" # of run.sh

have() { command -v "$1" >/dev/null; }

without() {
    echo "left out: no $1"
    [ -z "${GN_REQUIRE_ALL:-}" ] || failed=$((failed + 1))
}

# Runs a command; shows its name and output if it fails.
try() {
    what=$1
    shift
    done=$((done + 1))
    if ! "$@" >log 2>&1; then
        failed=$((failed + 1))
        echo "FAILED: $what"
        echo "  $*"
        head -n 30 log
    fi
}

# Prints nothing if the command does, else fails.
silent() {
    text=$("$@") && [ -z "$text" ] || { echo "$text"; return 1; }
}

vulkan=
for dir in ${VULKAN_SDK:+"$VULKAN_SDK/include"} /usr/include /usr/local/include; do
    [ -f "$dir/vulkan/vulkan.h" ] && vulkan=$dir && break
done
configs="GPUNUM_NO_VULKAN"
[ -n "$vulkan" ] && configs="$configs GPUNUM_FULL" || without "Vulkan headers"
volk=
[ -n "$vulkan" ] && for dir in "$vulkan" "$vulkan/volk" "$vulkan/Volk"; do
    [ -f "$dir/volk.h" ] && volk=$dir && break
done
[ -n "$volk" ] || without "volk"
with_volk=
[ -n "$volk" ] && [ "$volk" != /usr/include ] && with_volk="-isystem $volk"

# --- the files ----------------------------------------------------------------------------------

cat >implementation.c <<'TEXT'
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
TEXT
cat >public.c <<'TEXT'
#include "gpunum.h"
#include "gpunum.h"
int gn_test_public(void);
int gn_test_public(void) {
    gn_options o = {0};
    return (int)sizeof o + (int)sizeof(gn_shape);
}
TEXT
sed 's/= {0}/= gn_options()/' public.c >public.cpp
cat >main.c <<'TEXT'
#include "gpunum.h"
int main(void) {
    gn_context *g = gn_open(NULL);
    gn_close(g);
    return g == NULL;
}
TEXT
cp main.c main.cpp
cp implementation.c implementation.cpp
# With a g of its own, which GCC sees in the header's templates wherever it stands.
cp "$root/tests/test_cpp.cpp" user.cpp
echo 'extern gn_context *g;' >>user.cpp
cat >twice.c <<'TEXT'
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include "gpunum.h"
TEXT
# One unity file: users first and the implementation last, and the other way round.
printf '#include "public.c"\n#include "implementation.c"\n#include "main.c"\n' >unity_last.c
printf '#include "implementation.c"\n#include "public.c"\n#include "main.c"\n' >unity_first.c
cat >hostile.c <<'TEXT'
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define near
#define far
#define small char
#define interface struct
#define ERROR 0
#define TRUE 1
#define FALSE 0
#define OUT
#define IN
#define C 1
#define L 1
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
TEXT
cp hostile.c hostile.cpp
# Hosts with a Vulkan of their own: by prototypes, by volk, and in one file in either order.
cat >host_prototypes.c <<'TEXT'
#include <vulkan/vulkan.h>
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
PFN_vkVoidFunction gn_test_host(VkInstance i);
PFN_vkVoidFunction gn_test_host(VkInstance i) { return vkGetInstanceProcAddr(i, "vkCreateDevice"); }
TEXT
cat >host_volk.c <<'TEXT'
#include <volk.h>
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
PFN_vkVoidFunction gn_test_host(VkInstance i);
PFN_vkVoidFunction gn_test_host(VkInstance i) { return vkGetInstanceProcAddr(i, "vkCreateDevice"); }
TEXT
cat >host_unity.c <<'TEXT'
#include "gpunum.h"
#include <volk.h>
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
PFN_vkVoidFunction gn_test_host(VkInstance i);
PFN_vkVoidFunction gn_test_host(VkInstance i) { return vkGetInstanceProcAddr(i, "vkCreateDevice"); }
TEXT
cat >host_switch.c <<'TEXT'
#define GPUNUM_USE_VOLK
#define GPUNUM_IMPLEMENTATION
#include "gpunum.h"
#include <volk.h>
PFN_vkVoidFunction gn_test_host(VkInstance i);
PFN_vkVoidFunction gn_test_host(VkInstance i) { return vkGetInstanceProcAddr(i, "vkCreateDevice"); }
TEXT

# --- dialects -----------------------------------------------------------------------------------

compilers=
for c in gcc clang; do
    have $c && compilers="$compilers $c" || without "$c"
done
cxx() { case $1 in gcc) echo g++ ;; *) echo clang++ ;; esac; }
# What is left out, declared twice or in another order every compiler sees alike, and clang in a quarter of gcc's time.
quick=gcc
! have clang || quick=clang

for c in $compilers; do
    p=$(cxx "$c")
    for config in $configs; do
        # The implementation in the oldest C, among a host's macros, and in the newest C++; the tests below take these the
        # other way round.
        try "$c c99 $config" "$c" -std=c99 $warnings -fsyntax-only -I$include -D$config public.c
        try "$p c++20 $config" "$p" -std=c++20 $warnings -fsyntax-only -I$include -D$config implementation.cpp \
            public.cpp
        if [ "$c" = gcc ]; then continue; fi # whose objects below are compiled among a host's macros
        try "$c hostile $config" "$c" -std=c99 $warnings -fsyntax-only -I$include -D$config hostile.c
        try "$p hostile $config" "$p" -std=c++11 $warnings -fsyntax-only -I$include -D$config \
            hostile.cpp
    done
    for std in c11 c17; do
        try "$c $std" "$c" -std=$std $warnings -fsyntax-only -I$include public.c
    done
    for std in c++11 c++17 c++20; do
        try "$p $std" "$p" -std=$std $warnings -fsyntax-only -I$include public.cpp
        try "$p gn::array $std" "$p" -std=$std $warnings -fno-exceptions -fno-rtti -fsyntax-only -I$include user.cpp
    done
done
for switch in GPUNUM_NO_THREADS GPUNUM_NO_SIMD GPUNUM_NO_AVX512 GPUNUM_NO_FFT GPUNUM_NO_LINALG; do
    try "$switch" $quick -std=c99 $warnings -fsyntax-only -I$include -D$switch implementation.c
done

# On a big-endian machine, which the compiler is told that this is one, the implementation says why it does not compile.
refuses() {
    ! "$@" >log.refused 2>&1 && grep -q "error.*big-endian" log.refused || { cat log.refused; return 1; }
}
try "big-endian" refuses $quick -std=c99 -E -o refused.i -I$include -U__BYTE_ORDER__ \
    -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__ implementation.c

# --- ways of including --------------------------------------------------------------------------

# The programs of tests/hosts are gcc's.
[ -n "$vulkan" ] && try "host_prototypes" $quick -std=c99 $warnings -fsyntax-only -I$include host_prototypes.c
[ -n "$volk" ] && for host in host_volk host_unity host_switch; do
    try "$host" $quick -std=c99 $warnings -fsyntax-only -I$include $with_volk $host.c
done

# Warnings that come only when optimised: of C by the build's own objects and tools/weight.py. Not position independent: so that
# constant tables with pointers count as read-only below. Among a host's macros. With everything in one object, and as C++;
# without Vulkan in parts, beside a user that links them.
whole=${configs##* }
for config in $configs; do
    flags="$warnings -I$include -D$config"
    try "twice $config" $quick -std=c99 $flags -fsyntax-only twice.c
    for unity in unity_first unity_last; do
        try "$unity $config" $quick -std=c99 $flags -fsyntax-only $unity.c
    done
    : >$config.shared
    if [ $config = $whole ]; then
        try "object $config" gcc -std=c99 -O0 -fno-pic $flags -c hostile.c -o $config.o
        try "implementation as C++ $config" g++ -std=c++11 -O0 $flags -c hostile.cpp -o cpp_$config.o
        try "C user of C++ implementation $config" gcc -std=c99 -c $flags main.c -o main.o
        try "link C with C++ implementation $config" g++ main.o cpp_$config.o -o app -lm -lpthread -ldl
        try "run, C user of C++ implementation $config" ./app
    else
        for part in 1 2 3 4; do
            try "part $part $config" gcc -std=c99 -O0 -fno-pic $flags -DGPUNUM_PART=$part -c hostile.c -o part_$part.o
        done
        try "link the parts $config" gcc -std=c99 $flags -DGPUNUM_PART=0 implementation.c main.c part_1.o part_2.o part_3.o \
            part_4.o -no-pie -o app -lm -lpthread -ldl
        try "run the parts $config" ./app
        nm -u part_*.o | awk '$2 ~ /^gni_/ { print $2 }' >$config.shared
        try "parts in one object $config" ld -r part_1.o part_2.o part_3.o part_4.o -o $config.o
    fi
    try "two files, C $config" gcc -std=c99 $flags main.c public.c $config.o -no-pie -o app \
        -lm -lpthread -ldl
    try "run, C $config" ./app
    try "two files, C++ user $config" g++ -std=c++11 $flags main.cpp public.cpp $config.o -no-pie \
        -o app -lm -lpthread -ldl
    try "run, C++ user $config" ./app
done

# Without transforms and decompositions: their functions say so, the others work.
cat >without.c <<'TEXT'
#define GPUNUM_IMPLEMENTATION
#define GPUNUM_NO_VULKAN
#define GPUNUM_NO_FFT
#define GPUNUM_NO_LINALG
#include "gpunum.h"
#include <string.h>

static int said(gn_context *g, gn_array *y, const char *what) {
    const int ok = y == NULL && gn_status_get(g) == GN_ERROR_UNSUPPORTED && strstr(gn_error(g), what) != NULL;
    gn_error_clear(g);
    return ok;
}

int main(void) {
    gn_context *g = gn_open(NULL);
    gn_array *a = gn_eye(g, GN_F32, 3, 3, 0), *x = gn_arange(g, GN_F32, 0.0, 5.0, 1.0), *other = NULL;
    int ok = gn_item(gn_sum(gn_convolve(x, x, GN_CONV_FULL), GN_ALL)) == 100.0;
    ok = ok && said(g, gn_fft(x, 0, -1, GN_FFT_BACKWARD), "gn_fft: GPUNUM_NO_FFT");
    ok = ok && said(g, gn_dct(x, 2, 0, -1, GN_FFT_BACKWARD), "gn_dct: GPUNUM_NO_FFT");
    ok = ok && said(g, gn_inv(a), "gn_inv: GPUNUM_NO_LINALG") && said(g, gn_det(a), "gn_det: ");
    ok = ok && said(g, gn_cholesky(a), "gn_cholesky: ") && said(g, gn_solve(a, a), "gn_solve: ");
    ok = ok && said(g, gn_qr(a, &other), "gn_qr: ") && said(g, gn_eigh(a, &other), "gn_eigh: ");
    ok = ok && said(g, gn_eig(a, &other), "gn_eig: ") && said(g, gn_eigvals(a), "gn_eigvals: ");
    ok = ok && said(g, gn_solve_triangular(a, a, true, false, false), "gn_solve_triangular: ");
    ok = ok && said(g, gn_expm(a), "gn_expm: ");
    ok = ok && said(g, gn_roots(x), "gn_roots: ");
    ok = ok && said(g, gn_svd(a, true, &other, NULL), "gn_svd: ") && other == NULL;
    gn_close(g);
    return !ok;
}
TEXT
try "without" $quick -std=c99 -O0 $warnings -I$include without.c -o without -lm -lpthread
try "run, without" ./without

# The kernels under another name.
if [ -n "$vulkan" ]; then
    mkdir renamed
    cp $include/gpunum.h renamed
    cp $include/shaders.h renamed/kernels.h
    try "kernels.h" $quick -std=c99 -O0 $warnings -Irenamed -I"$vulkan" '-DGPUNUM_SHADERS="kernels.h"' -fsyntax-only implementation.c
fi

# Vulkan headers newer than the host's, where tools/shader_tools.sh has fetched some.
newer=$root/build/shader-tools/root/usr/include
if [ -n "$vulkan" ] && [ -f "$newer/vulkan/vulkan.h" ]; then
    mkdir newer
    ln -s "$newer/vulkan" newer/vulkan
    [ -d "$newer/vk_video" ] && ln -s "$newer/vk_video" newer/vk_video
    try "newer Vulkan headers, C" $quick -std=c99 $warnings -fsyntax-only -I$include -isystem newer \
        implementation.c
    try "newer Vulkan headers, C++" g++ -std=c++11 $warnings -fsyntax-only -I$include \
        -isystem newer implementation.cpp
fi

# --- symbols ------------------------------------------------------------------------------------

# Parts know each other's tables by name: what another one asks for is in the file $2.
escaping() { nm -g --defined-only "$1" | awk '$3 !~ /^gn_/ { print $3 }' | grep -vxF -f "$2" | sed 's/^/escapes: /'; }
# What belongs to a thread is no global; how often the process was forked, the devices whose threads end with it, and how many
# contexts are open, by which handles of closed ones are told from memory, belong to the process alone.
mutable() {
    nm -f sysv "$1" | awk -F'|' '$3 ~ /[bBdDcC]/ && $4 !~ /TLS/ && $1 !~ /^(gni_forks|gni_contexts|gni_vk_open_(list|lock)|watched\.[0-9]+) *$/ {
        print "mutable global: " $1 }'
}
forbidden() {
    nm -u "$1" | awk '$2 ~ /^(abort|exit|_exit|__assert_fail|vk[A-Z].*)$/ { print "uses: " $2 }'
}
for config in $configs; do
    [ -f $config.o ] || continue
    try "only gn_ symbols $config" silent escaping $config.o $config.shared
    [ ! -f cpp_$config.o ] || try "only gn_ symbols, C++ $config" silent escaping cpp_$config.o $config.shared
    try "no mutable globals $config" silent mutable $config.o
    try "no abort, exit or vk symbol $config" silent forbidden $config.o
done

# The public half brings in stddef, stdint and stdbool, and nothing of Vulkan or of stdio.
foreign() {
    gcc -std=c99 -E -I$include public.c |
        sed -n 's/^# [0-9]* "\([^"]*\)".*/\1/p' | sort -u |
        grep -E '/(stdio|stdlib|string|math|pthread|windows|immintrin|vulkan|volk)[^/]*\.h$'
    true
}
try "public half includes nothing else" silent foreign

# --- Windows ------------------------------------------------------------------------------------

if have x86_64-w64-mingw32-gcc; then
    # The Vulkan headers alone, without the host's C library beside them.
    mkdir windows
    [ -n "$vulkan" ] && for dir in vulkan vk_video; do
        [ -d "$vulkan/$dir" ] && ln -s "$vulkan/$dir" windows/$dir
    done
    for config in $configs; do
        flags="$warnings -I$include -isystem windows -D$config"
        linked="-o app.exe"
        [ $config = $whole ] || linked=-fsyntax-only
        try "mingw-w64 C $config" x86_64-w64-mingw32-gcc -std=c99 -O0 $flags main.c public.c implementation.c $linked
        have x86_64-w64-mingw32-g++ && try "mingw-w64 C++ $config" x86_64-w64-mingw32-g++ -std=c++11 \
            $flags -fsyntax-only implementation.cpp
    done
else
    without "mingw-w64"
fi

echo "$done compilations and checks, $failed failed"
[ $failed = 0 ]
