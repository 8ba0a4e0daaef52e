#!/usr/bin/env python3
"""Builds the tests for WebAssembly and runs them in node, with SIMD128 and with its relaxed form: check_wasm.py [NAME...]

The library is the npm package's own objects. tools/web/build.sh compiles them, and Emscripten is what it has from
tools/web/setup.sh, where there is none."""
import concurrent.futures, os, subprocess, sys, time

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
tools = root + "/build/emscripten/bin/"
# Tests of the CPU in a single thread. Those that are left out need a child process, a GPU or minutes.
NAMES = ("array arrays autograd complex create dlpack epilogue fft index io leaves linalg log losses matmul order print "
         "prologue random range safetensors train views ops").split()
# Those whose numbers the relaxed form can change.
RELAXED = "autograd complex epilogue fft linalg losses matmul order prologue random train ops".split()
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror".split()
# The same stack as a page's; NODERAWFS reaches the folder of cases. Emscripten's libraries of C++, GL and AL are not compiled.
LINK = ["-sDEFAULT_TO_CXX=0", "-sAUTO_NATIVE_LIBRARIES=0", "-sALLOW_MEMORY_GROWTH", "-sMAXIMUM_MEMORY=4GB", "-sSTACK_SIZE=1MB", "-sNODERAWFS", "-sEXIT_RUNTIME", "-O1",
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


def test(name, parts):
    start = time.time()
    private = "gni_" in open(root + "/tests/test_%s.c" % name).read()
    own = ["-DGPUNUM_PART=%d" % private]
    o = built(name + ".o", "-c", "-O1" if private else "-O0", *own, *WARNINGS, root + "/tests/test_%s.c" % name)
    result = []
    for kind, passes in parts["passes"]:
        if kind == "relaxed" and name not in RELAXED and not sys.argv[1:]:
            continue
        js = "%s_%s.js" % (name, kind)
        built(js, o, passes, *([] if private else [parts["host"]]), *LINK)
        code, text = run([tools + "node", js], env=dict(os.environ, GN_TEST_BACKEND="cpu", GN_SOURCE_DIR=root, GN_TEST_AGAIN="1"),
                         timeout=600)
        result.append((kind, code, text))
    return name, result, time.time() - start


code, text = run([root + "/tools/web/build.sh", "objects"], env=dict(os.environ, GPUNUM_CFLAGS="-Werror"))
if code != 0:
    sys.exit(text)
work = root + "/build/npm.work/"
parts = {"host": work + "host.o", "passes": [(kind, work + kind + ".o") for kind in ("simd", "relaxed")]}
newest = max(os.path.getmtime(os.path.join(d, f)) for top in ("tools/gpunum", "tools/web", "tests") for d, _, fs in os.walk(root + "/" + top)
             for f in fs)
names = sys.argv[1:] or [n for n in NAMES if os.path.exists(root + "/tests/test_%s.c" % n)]
bad = 0
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for job in [pool.submit(test, n, parts) for n in names]:
        name, result, seconds = job.result()
        for kind, code, text in result:
            bad += code != 0
            lines = text.strip().split("\n")
            print("%-12s %-8s %s" % (name, kind, lines[-1] if code == 0 else "FAILED\n" + "\n".join(lines[-40:])))
        print("%-12s %.0f s" % (name, seconds), flush=True)
sys.exit(bad != 0)
