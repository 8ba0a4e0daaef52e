#!/usr/bin/env python3
"""Builds tests for 64-bit ARM and runs them in QEMU: check_aarch64.py [NAME...], those of a NAME without leaving any out

No other check compiles the NEON form of the SIMD rooms. The folder of case files is GN_CASES, else that of tests/run.sh."""
import concurrent.futures, os, shutil, subprocess, sys, time

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
work = root + "/build/aarch64"
CC = "aarch64-linux-gnu-gcc"
QEMU = shutil.which("qemu-aarch64") or "qemu-aarch64-static"
# Programs that go through the vectors, longest first. What a name is followed by is left out of it: an emulated minute of it
# shows nothing that the rest does not.
TESTS = {"ops": "", "matmul": "test_long_sums", "linalg": "test_residuals test_ill_conditioned",
         "fft": "test_scipy test_round_trip test_plan_cache", "prologue": "test_large", "complex": "", "conv": "", "autograd": "",
         "order": "", "norm": "", "pool": "", "index": "test_assign_often", "array": "", "random": "", "arrays": "", "losses": "",
         "train": "", "create": ""}
FLAGS = ["-std=c99", "-DGPUNUM_NO_VULKAN", "-I" + root + "/tests/web", "-I" + root + "/tools/gpunum"]
FLAGS += "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror".split()


def run(command, **more):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, errors="replace",
                       **more)
    return p.returncode, p.stdout


def built(out, *arguments):
    """Compiles where the rooms or the tests are younger."""
    out = work + "/" + out
    if not os.path.exists(out) or os.path.getmtime(out) < newest:
        loads = dict(os.environ, LD_PRELOAD=os.environ.get("GPUNUM_COMPILERS_LOAD", "")) # of run.sh
        code, text = run([CC, *FLAGS, *arguments, "-o", out], env=loads)
        if code != 0:
            sys.exit(text)
    return out


def part(number, level):
    return built("part_%d.o" % number, level, "-DGPUNUM_PART=%d" % number, "-c", work + "/implementation.c")


def test(name):
    start = time.time()
    source = root + "/tests/test_%s.c" % name
    text = open(source).read()
    private = "gni_" in text  # holds the host part itself
    without = "" if sys.argv[1:] else TESTS[name]
    gone = [n for n in without.split() if "GN_TEST(%s)" % n not in text and "GN_TEST_FRESH(%s)" % n not in text]
    if gone:
        return name, 1, "no test of that name to leave out: " + " ".join(gone), 0.0
    program = built("test_" + name, "-O1", "-static", "-DGPUNUM_PART=%d" % private, source, *objects[private:], "-lm", "-lpthread")
    folder = work + "/run_" + name
    os.makedirs(folder, exist_ok=True)
    environment = dict(os.environ, GN_TEST_BACKEND="cpu", GN_SOURCE_DIR=root, CM_WITHOUT=without, GN_TEST_AGAIN="1")
    code, text = run([QEMU, program], env=environment, cwd=folder, timeout=900)
    return name, code, text, time.time() - start


os.makedirs(work, exist_ok=True)
newest = max(os.path.getmtime(os.path.join(d, f)) for top in ("tools/gpunum", "tests") for d, _, fs in os.walk(root + "/" + top)
             for f in fs)
with open(work + "/implementation.c", "w") as f:
    f.write('#define GPUNUM_IMPLEMENTATION\n#include "gpunum.h"\n')
os.environ.setdefault("GN_CASES", root + "/build/test/cases")
os.environ.setdefault("GN_PYTHON", sys.executable)
bad = 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    objects = list(pool.map(part, (1, 2), ("-O1", "-O2")))
    for name, code, text, seconds in pool.map(test, sys.argv[1:] or TESTS):
        bad += code != 0
        lines = text.strip().split("\n")
        print("%-12s %3.0f s  %s" % (name, seconds, lines[-1] if code == 0 else "FAILED\n" + "\n".join(lines[-40:])), flush=True)
sys.exit(bad != 0)
