#!/usr/bin/env python3
"""Compiles and runs what README.md shows, and compares with what it says comes out.

    check_readme.py CC CXX INCLUDE_DIR LIBRARY...

The libraries hold the implementation. NumPy's sheet is compared with NumPy, where this Python has it.
"""
import os
import re
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    np = None

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
IN_MAIN = '#include "gpunum.h"\n#include <stdio.h>\nint main(void) {\ngn_context *g = gn_open(NULL);\n%s\n' \
    'int failed = gn_status_get(g) != GN_OK;\nif (failed) printf("%%s\\n", gn_error(g));\ngn_close(g);\nreturn failed;\n}\n'


def run(name, text, suffix=".c"):
    """Compiles a program, runs it and returns what it prints."""
    cc, cxx, include, libraries = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    source = name + suffix
    with open(source, "w") as f:
        f.write(text)
    compiler = [cxx, "-std=c++11"] if suffix == ".cpp" else [cc, "-std=c99"]
    command = compiler + ["-Wall", "-Wextra", "-Werror", "-DGPUNUM_PART=0", "-I" + include, "-c", source, "-o", name + ".o"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (name, done.stderr)
    # The implementation is C: its libraries need nothing of C++.
    command = compiler[:1] + [name + ".o"] + libraries + ["-lm", "-lpthread", "-ldl", "-o", name]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (name, done.stderr)
    done = subprocess.run(["./" + name], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (name, done.stdout, done.stderr)
    return done.stdout


def same(name, printed, shown):
    """Line by line, the same words and numbers alike; where it was computed may differ."""
    lines = [[line for line in text.strip().split("\n") if not re.match(r"on |\(why not", line)]
             for text in (printed, shown)]
    assert len(lines[0]) == len(lines[1]), (name, printed, shown)
    for a, b in zip(*lines):
        assert NUMBER.sub("#", a).split() == NUMBER.sub("#", b).split(), (name, a, b)
        for x, y in zip(NUMBER.findall(a), NUMBER.findall(b)):
            assert abs(float(x) - float(y)) <= 2e-6 + 1e-5 * abs(float(y)), (name, a, b)


def blocks(text):
    """[(language, text)] of the fenced blocks."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def sheet(text, title):
    """[(left codes, right codes)] of the table under a heading."""
    part = text[text.index("\n## " + title + "\n"):]
    rows = re.findall(r"^\| (`.*`) \| (`.*`) \|$", part[:part.index("\n## ", 4)], re.M)
    return [tuple(re.findall(r"`([^`]*)`", cell) for cell in row) for row in rows]


def check_blocks(text):
    found = blocks(text)
    for i, (language, body) in enumerate(found):
        if language not in ("c", "cpp"):
            continue
        name = "block_%d" % i
        if language == "c" and i == 0:
            with open(os.path.join(ROOT, "examples", "quickstart.c"), encoding="utf-8") as f:
                example = f.read()
            assert example.endswith(body) and example.count("\n") - body.count("\n") == 1, "README.md has another quickstart.c"
        if body.startswith("// impl.c"):
            continue  # tests/compile_matrix.sh compiles that
        if "int main" not in body:
            body = IN_MAIN % body
        output = run(name, body, "." + language)
        shown = next(b for kind, b in found[i + 1:] if kind == "text")
        same(name, output, shown)
        yield name


def check_numpy(rows):
    a, b = np.array([[1, 5, 2], [0.5, -1, 4]], "f4"), np.array([[0, 1, 2], [3, -4, 0.25]], "f4")
    np.save("a.npy", a)
    np.save("b.npy", b)
    pairs = [pair for left, right in rows for pair in zip(left, right)]
    assert all(len(left) == len(right) for left, right in rows)
    code = 'gn_array *a = gn_load_npy(g, "a.npy"), *b = gn_load_npy(g, "b.npy");\n'
    for i, (_, right) in enumerate(pairs):
        code += 'gn_save_npy(%s, "row_%d.npy");\n' % (right, i)
    run("sheet_numpy", IN_MAIN % code)
    for i, (left, right) in enumerate(pairs):
        want, got = eval(left, {"np": np, "a": a, "b": b}), np.load("row_%d.npy" % i)
        assert np.shape(want) == got.shape and np.allclose(got, want, rtol=1e-5, atol=1e-6), (left, right, want, got)
    return len(pairs)


def main():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        text = f.read()
    names = list(check_blocks(text))
    assert len(names) == 3, names
    torch = sheet(text, "If you know PyTorch")
    output = run("sheet_torch", IN_MAIN % ("\n".join(right[0] for _, right in torch) + "\n(void)y; (void)q;"))
    # With w = 0 both classes are as likely.
    assert output.startswith("0.693147\narray(["), output
    numpy = sheet(text, "If you know NumPy")
    pairs = check_numpy(numpy) if np is not None else "no"
    for link in re.findall(r"\]\(([^):#]+)\)", text):
        assert os.path.exists(os.path.join(ROOT, link)), link
    with open(os.path.join(ROOT, "tools", "gpunum", "api", "manual.h"), encoding="utf-8") as f:
        manual = re.search(r"// Quick start\n//\n(.*?)//\n//     cc ", f.read(), re.S).group(1)
    start = "#include <stdio.h>\n" + re.sub(r"^//(?:     )?", "", manual, flags=re.M)
    assert run("manual", start).startswith("array([0.")
    print("%d programs, %d lines of PyTorch's sheet, %s of NumPy's, the manual's first program"
          % (len(names), len(torch), pairs))


main()
