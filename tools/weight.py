#!/usr/bin/env python3
"""Weighs gpunum.h against tools/gpunum/budgets.txt: text per room and SIMD pass, compile time and memory, sizes.

  tools/weight.py            prints each figure beside its budget
  tools/weight.py --check    fails besides when a budget is exceeded
  tools/weight.py --budgets  prints budgets.txt anew with today's figures, for a person to trim
  tools/weight.py --text     text alone: one compilation instead of three

It compiles with $CC or gcc: the rooms for their text, otherwise gpunum.h as users do, which takes more memory, since its
lines are read again for each pass. A function counts for the room that it is written in, and for the pass that its
name ends in; one that is inlined everywhere counts where it went. Bytes may not exceed their budget at all (by a tenth
with a compiler that is not the one named there), seconds and megabytes may by the factor `slack`.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOMS = os.path.join(ROOT, "tools", "gpunum")
BUDGETS = os.path.join(ROOMS, "budgets.txt")
PASSES = ("host", "base", "avx2", "avx512")
SYMBOL = re.compile(r"[0-9a-f]+ ([0-9a-f]+) [tT] (\S+)\t.*/tools/gpunum/(\w+/\w+)\.h:\d+$")
WARNINGS = "-std=c99 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror".split()
COMPILER = os.environ.get("CC", "gcc")
HEAD = """\
# What gpunum.h may weigh, kept by tools/weight.py (test check.weight). A change that needs more says here how much.
#
# Measured with {compiler}.
# Text in bytes at -O2 by room, compiled once (host) or for each instruction set.
"""


def compiled(folder, name, flags, of=ROOT):
    """Compiles gpunum.h, or the rooms: the object's path, CPU seconds and megabytes at the most."""
    source, out = os.path.join(folder, "weigh.c"), os.path.join(folder, name + ".o")
    with open(source, "w") as f:
        f.write('#define GPUNUM_IMPLEMENTATION\n#include "gpunum.h"\n')
    child = subprocess.Popen([COMPILER, *flags, "-I" + of, "-I" + ROOT, "-c", source, "-o", out])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        sys.exit("weight: %s %s does not compile" % (COMPILER, " ".join(flags)))
    return out, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0


def text_by_room(path):
    """{room: [bytes per pass]}"""
    rooms = collections.defaultdict(lambda: [0] * len(PASSES))
    for line in subprocess.run(["nm", "-lS", path], capture_output=True, text=True, check=True).stdout.splitlines():
        m = SYMBOL.match(line)
        if m:
            which = re.search(r"_(base|plain|avx2|avx512)\b", m.group(2).replace(".", " "))
            which = which.group(1).replace("plain", "base") if which else "host"
            rooms[m.group(3)][PASSES.index(which)] += int(m.group(1), 16)
    return rooms


def program_bytes(folder, object_path):
    """A stripped program with everything."""
    source, out = os.path.join(folder, "main.c"), os.path.join(folder, "main")
    with open(source, "w") as f:
        f.write('#include "gpunum.h"\nint main(void) { gn_close(gn_open(NULL)); return 0; }\n')
    subprocess.run([COMPILER, "-O2", "-s", "-I" + ROOMS, source, object_path, "-o", out, "-lm", "-lpthread", "-ldl"],
                   check=True)
    return os.path.getsize(out)


def weigh(text_only):
    """({room: [bytes]}, {what: figure})"""
    rest = {}
    for name in ("gpunum.h", "shaders.h"):
        rest["bytes " + name] = os.path.getsize(os.path.join(ROOT, name))
    with tempfile.TemporaryDirectory() as folder:
        # Lines cost little and lead from symbols to rooms.
        whole, seconds, megabytes = compiled(folder, "O2", ["-O2", "-g1"], ROOMS)
        rooms = text_by_room(whole)
        rest["seconds -O2"], rest["megabytes -O2"] = seconds, megabytes
        rest["bytes program -O2"] = program_bytes(folder, whole)
        if not text_only:
            # The one compilation of tests that is optimised and has no Vulkan, so it is strict as well.
            _, rest["seconds -O2 without Vulkan"], _ = compiled(folder, "cpu", ["-O2", "-DGPUNUM_NO_VULKAN", *WARNINGS])
            plain, rest["seconds -O0"], rest["megabytes -O0"] = compiled(folder, "O0", ["-O0"])
            rest["bytes object -O0"] = os.path.getsize(plain)
    return rooms, rest


def budgets():
    """({room: [bytes]}, {what: figure}, the compiler they were measured with)"""
    rooms, rest, compiler = {}, {}, ""
    with open(BUDGETS, encoding="utf-8") as f:
        for line in f:
            if line.startswith("# Measured with "):
                compiler = line[16:].strip().rstrip(".")
            words = line.split("#")[0].split()
            if words and "/" in words[0]:
                rooms[words[0]] = [int(w) if w != "-" else 0 for w in words[1:]]
            elif words and words[0] != "room":
                rest[" ".join(words[:-1])] = float(words[-1])
    return rooms, rest, compiler


def roomy(figure):
    """A budget for it: a twentieth more, as inlining moves functions about, and rounded up to three digits."""
    more = figure * 1.05
    digit = 10 ** max(len(str(int(more))) - 3, 0)
    return int(-(-more // digit) * digit)


def version():
    text = subprocess.run([COMPILER, "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return "gcc " + text.split(".")[0] if text else COMPILER


def main():
    mode = sys.argv[1] if len(sys.argv) == 2 else ""
    if sys.argv[1:] and mode not in ("--check", "--budgets", "--text"):
        sys.exit(__doc__)
    rooms, rest = weigh(mode == "--text")
    may_rooms, may_rest, compiler = budgets() if os.path.exists(BUDGETS) else ({}, {}, "")
    may_by = 1.0 if version() == compiler else 1.1
    total = [sum(r[i] for r in rooms.values()) for i in range(len(PASSES))]
    if mode == "--budgets":
        print(HEAD.format(compiler=version()) + "%-24s" % "room" + "".join("%9s" % p for p in PASSES))
        for room, bytes_of in sorted(rooms.items()):
            print("%-24s" % room + "".join("%9s" % (roomy(b) or "-") for b in bytes_of))
        print("\n# Sizes; CPU seconds and memory of the compiler, which may be `slack` times as much, as machines differ.")
        print("%-40s %12.10g" % ("slack", may_rest.get("slack", 2.5)))
        for what, figure in rest.items():
            print("%-40s %12.10g" % (what, roomy(figure)))
        return
    over = []
    print("%-24s" % "text, bytes" + "".join("%16s" % p for p in PASSES))
    for room, bytes_of in sorted(rooms.items(), key=lambda r: -sum(r[1])):
        may = may_rooms.get(room, [0] * len(PASSES))
        over += ["%s %s: %d bytes of text" % (room, PASSES[i], b) for i, b in enumerate(bytes_of) if b > may[i] * may_by]
        print("%-24s" % room + "".join("%16s" % ("%d/%d" % (b, m) if b or m else "") for b, m in zip(bytes_of, may)))
    print("%-24s" % "all" + "".join("%16d" % t for t in total) + "%12d" % sum(total))
    for what, figure in rest.items():
        may = may_rest.get(what, 0.0)
        if figure > may * (1.0 if what.startswith("bytes") else may_rest.get("slack", 1.0)):
            over.append("%s: %.1f" % (what, figure))
        print("%-40s %12.10g of %.10g" % (what, round(figure, 1), may))
    print("\n".join("over its budget: " + line for line in over))
    if over and mode == "--check":
        sys.exit(1)


if __name__ == "__main__":
    main()
