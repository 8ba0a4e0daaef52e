#!/usr/bin/env python3
"""Checks the shape of gpunum.h: its contents list against its rooms, and their sizes.

The list stands between a line "// Contents" and an empty comment line, one room a line:
//     name    what lives there
A room opens with "// >>name" and reaches to the next one.
"""
import os
import re
import sys

ROOM_GOAL, ROOM_LIMIT = 1200, 1300
FUNCTION_GOAL = 120


def contents(lines):
    names, inside = [], False
    for line in lines:
        if re.match(r"//\s*Contents\b", line):
            inside = True
        elif inside:
            entry = re.match(r"//\s{4,}(\w+)\s+\S", line)
            if entry:
                names.append(entry.group(1))
            elif names or not line.startswith("//"):
                break
    return names


def rooms(lines):
    """[(name, number of lines)]; the last room ends where the revision history or licence begins."""
    starts = [(m.group(1), n) for n, m in ((n, re.match(r"// >>(\w+)", line))
                                           for n, line in enumerate(lines)) if m]
    ends = [n for _, n in starts[1:]] + [len(lines)]
    return [(name, end - start) for (name, start), end in zip(starts, ends)]


def functions(lines):
    """[(first line's text, number, length)] of what opens and closes a brace in column one."""
    start = None
    for n, line in enumerate(lines):
        if start is None and re.match(r"[A-Za-z_].*\)\s*\{$", line):
            start = n
        elif start is None and re.match(r"\s+.*\)\s*\{$", line):
            # a parameter list over several lines opens on an earlier line in column one
            back = n
            while back and re.match(r"\s+\S", lines[back]) and n - back < 8:
                back -= 1
            if re.match(r"[A-Za-z_].*[,(]$", lines[back]):
                start = back
        elif start is not None and line.startswith("}"):
            yield lines[start], start + 1, n - start + 1
            start = None


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "gpunum.h")
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    bad = []
    listed, found = contents(lines), rooms(lines)
    names = [name for name, _ in found]
    if not listed:
        bad.append("no contents list")
    for name in listed:
        if name not in names:
            bad.append("room %s is listed, but there is no '// >>%s'" % (name, name))
    for name in names:
        if name not in listed:
            bad.append("room %s is not in the contents list" % name)
        if names.count(name) > 1:
            bad.append("room %s is there more than once" % name)
    if not bad and listed != names:
        bad.append("the contents list has another order than the rooms: %s" % " ".join(names))
    for name, length in found:
        if length > ROOM_LIMIT:
            bad.append("room %s has %d lines, the limit is %d" % (name, length, ROOM_LIMIT))
        elif length > ROOM_GOAL:
            print("note: room %s has %d lines" % (name, length))
    for text, number, length in functions(lines):
        if length > FUNCTION_GOAL:
            print("note: line %d: %d lines in %s" % (number, length, text.rstrip(" {")))
    for number, line in enumerate(lines, 1):
        if line != line.rstrip() or "\t" in line:
            bad.append("line %d: tab or white space at the end" % number)
    print("%d rooms, %d lines" % (len(found), len(lines)))
    if bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
