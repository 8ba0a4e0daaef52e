#!/bin/sh
# The test command: sets up what is missing, builds, runs every test and check.
#
#   tests/run.sh                     every test and check
#   tests/run.sh -R '^array'         arguments go to CTest; builds what those tests need
#   GPUNUM_CHECKS=OFF tests/run.sh   without the slow checks: compile matrix, clang, AArch64, sanitizers, valgrind
#   GPUNUM_REQUIRE_ALL=OFF tests/run.sh   goes on where NumPy, a Vulkan driver or a compiler is missing
#
# Works on a fresh clone and says what it installs, fetches and compiles. But for packages of the system it leaves
# nothing outside build/ of this folder, where what it builds stays for the next time.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/test
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
export CTEST_OUTPUT_ON_FAILURE=1
# Large pages where the C library knows of them: a fifth of what shaders take to compile, a third of tests of large arrays.
export GLIBC_TUNABLES="${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1}"

# Nothing is left out silently of a whole run.
everything=OFF
[ $# -gt 0 ] || [ "${GPUNUM_CHECKS:-ON}" = OFF ] || everything=ON

echo "== set-up"
"$root/tools/setup.sh" test
mkdir -p "$build"
log=$build/build.log
: >"$log"
launcher=
if command -v ccache >/dev/null; then
    launcher="-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
    # What is not in it is not preprocessed first: the compiler says itself what it read.
    export CCACHE_DIR="${CCACHE_DIR:-$root/build/ccache}" CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
    # Memory of compilers; GPUNUM_COMPILERS_LOAD is for checks that start them by themselves.
    case $build in *" "*) ;; *)
        if cc -O1 -shared -fPIC -o "$build/large_pages.so" "$root/tests/large_pages.c" 2>/dev/null &&
            [ "$(LD_PRELOAD="$build/large_pages.so" sh -c 'echo loads' 2>&1)" = loads ]; then
            printf '#!/bin/sh\nLD_PRELOAD="%s" exec "$@"\n' "$build/large_pages.so" >"$build/with_large_pages"
            chmod +x "$build/with_large_pages"
            export CCACHE_PREFIX="$build/with_large_pages" GPUNUM_COMPILERS_LOAD="$build/large_pages.so"
        fi ;;
    esac
fi
configure() {
    cmake -S "$root" -B "$build" -G Ninja $launcher -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O2 -DGPUNUM_OWN_FLAGS=-O0 \
        -DGPUNUM_USER_FLAGS=-O1 -DGPUNUM_WARNINGS_AS_ERRORS=ON -DGPUNUM_CHECKS="${GPUNUM_CHECKS:-ON}" \
        -DGPUNUM_REQUIRE_ALL="${GPUNUM_REQUIRE_ALL:-$everything}" -DGPUNUM_FUZZ_SECONDS="${GPUNUM_FUZZ_SECONDS:-15}" \
        >>"$log" 2>&1 || { cat "$log"; exit 1; }
}
if [ $everything = ON ]; then
    # The library is compiled while drivers are fetched.
    {
        "$root/tests/lavapipe.sh" || echo "no newer lavapipe: the host's takes two to three times as long"
        "$root/tools/web/webgpu_setup.sh" || echo "no Dawn: the WebGPU layer is not tested"
    } &
    drivers=$!
    configure
    cmake --build "$build" --parallel "$jobs" --target gpunum_implementation >>"$log" 2>&1 || { cat "$log"; exit 1; }
    wait $drivers
    # Emscripten while all else is compiled; tests that need it wait for it.
    [ "${GPUNUM_CHECKS:-ON}" = OFF ] || "$root/tools/web/setup.sh" >"$build/emscripten.log" 2>&1 </dev/null &
fi
configure
names=$(cd "$build" && ctest -N "$@" | sed -n 's/^ *Test *#[0-9]*: //p')
[ -n "$names" ] || { echo "no test is named so: ctest -N in $build lists them"; exit 1; }
targets=all
[ $# -eq 0 ] || targets=$(for name in $names; do
    case $name in
    fuzz.*) name=${name#fuzz.}; echo "fuzz_${name%.*}" ;;
    *.cpu | *.vulkan) echo "test_${name%.*}" ;;
    example.*) echo "${name#example.}" ;;
    *) echo all ;;
    esac
done | sort -u | tr '\n' ' ')
case " $targets " in *" all "*) "$root/tools/shader_tools.sh" ;; esac

echo "== build"
[ $# -gt 0 ] || echo "all tests take half an hour on 2 cores; -R '^array' takes those of a name," \
    "GPUNUM_CHECKS=OFF leaves the slow checks out"
[ -f "$build/libgpunum_implementation.a" ] ||
    echo "compiles the library (two minutes on 2 cores, once) and what is to be tested into $build: $targets"
cmake --build "$build" --parallel "$jobs" --target $targets >>"$log" 2>&1 || { cat "$log"; exit 1; }
grep -i 'warning' "$log" || true

echo "== tests: $(echo "$names" | wc -w)"
cd "$build"
status=0
{ ctest --parallel "$jobs" --no-tests=error "$@" || echo "exit status $?"; } 2>&1 | tee ctest.log |
    python3 "$root/tests/progress.py" "$jobs" $names
# The summary comes last, after CTest's list of failures and of times.
grep -q '^exit status' ctest.log && status=1
grep -q 'tests passed' ctest.log || status=1
grep 'tests passed' ctest.log | tail -n 1
exit $status
