#!/usr/bin/env python3
"""Builds the tests for WebAssembly and runs them in node, with SIMD128 and with its relaxed form: check_wasm.py [NAME...]

Emscripten is what tools/web/setup.sh puts into build/emscripten/bin; it is called where there is none."""
import concurrent.futures, os, subprocess, sys, time

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
tools = root + "/build/emscripten/bin/"
# Tests of the CPU in a single thread. Those that are left out need a child process, a GPU or minutes.
NAMES = ("array arrays autograd complex create dlpack epilogue fft index io leaves linalg log losses matmul order print "
         "prologue random range safetensors train views ops").split()
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror".split()
# The same stack as a page's; NODERAWFS reaches the folder of cases.
LINK = ["-sALLOW_MEMORY_GROWTH", "-sMAXIMUM_MEMORY=4GB", "-sSTACK_SIZE=1MB", "-sNODERAWFS", "-sEXIT_RUNTIME", "-O1",
        "--pre-js", root + "/tests/web/environment.js"]


def run(command, **more):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, errors="replace",
                       **more)
    return p.returncode, p.stdout


def emcc(*arguments):
    code, text = run([tools + "emcc", "-std=c99", "-msimd128", "-I" + root + "/tests/web", "-I" + root + "/tools/gpunum"]
                     + list(arguments))
    if code != 0 or "warning:" in text:
        sys.exit(text)


def built(out, *arguments):
    """Compiles where the rooms or the tests are younger."""
    if not os.path.exists(out) or os.path.getmtime(out) < newest:
        emcc(*arguments, "-o", out)
    return out


def part(number, name, *flags):
    source = "part_%d.c" % number
    if not os.path.exists(source):
        with open(source, "w") as f:
            f.write("#define GPUNUM_IMPLEMENTATION\n#include \"gpunum.h\"\n")
    return built(name, "-c", "-DGPUNUM_PART=%d" % number, *WARNINGS, *flags, source)


def test(name, parts):
    start = time.time()
    private = "gni_" in open(root + "/tests/test_%s.c" % name).read()
    own = ["-DGPUNUM_PART=%d" % private]
    o = built(name + ".o", "-c", "-O1" if private else "-O0", *own, *WARNINGS, root + "/tests/test_%s.c" % name)
    result = []
    for kind, passes in parts["passes"]:
        js = "%s_%s.js" % (name, kind)
        built(js, o, passes, *([] if private else [parts["host"]]), *LINK)
        code, text = run([tools + "node", js], env=dict(os.environ, GN_TEST_BACKEND="cpu", GN_SOURCE_DIR=root), timeout=600)
        result.append((kind, code, text))
    return name, result, time.time() - start


if not os.path.exists(tools + "emcc") and run([root + "/tools/web/setup.sh"])[0] != 0:
    sys.exit("there is no Emscripten: tools/web/setup.sh")
newest = max(os.path.getmtime(os.path.join(d, f)) for top in ("tools/gpunum", "tests") for d, _, fs in os.walk(root + "/" + top)
             for f in fs)
names = sys.argv[1:] or [n for n in NAMES if os.path.exists(root + "/tests/test_%s.c" % n)]
bad = 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    jobs = [pool.submit(part, 1, "host.o", "-O1"), pool.submit(part, 2, "simd.o", "-O1"),
            pool.submit(part, 2, "relaxed.o", "-O1", "-mrelaxed-simd")]
    host, simd, relaxed = [j.result() for j in jobs]
    parts = {"host": host, "passes": [("simd", simd), ("relaxed", relaxed)]}
    for job in [pool.submit(test, n, parts) for n in names]:
        name, result, seconds = job.result()
        for kind, code, text in result:
            bad += code != 0
            lines = text.strip().split("\n")
            print("%-12s %-8s %s" % (name, kind, lines[-1] if code == 0 else "FAILED\n" + "\n".join(lines[-40:])))
        print("%-12s %.0f s" % (name, seconds), flush=True)
sys.exit(bad != 0)
