#!/usr/bin/env python3
"""Joins the rooms under tools/gpunum/ into gpunum.h.

  tools/make_header.py           writes gpunum.h
  tools/make_header.py --check   fails unless gpunum.h is what the rooms give

tools/gpunum/gpunum.h lists the rooms in their order, `#include "folder/room.h" // what lives there`. Each of these
lines becomes the room's text; the line CONTENTS of the manual becomes the list. What stands between
`#ifndef GNI_ROOMS` and its `#endif` helps editors that open a room alone and is left out.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOMS = os.path.join(ROOT, "tools", "gpunum")
INCLUDE = re.compile(r'#include "([a-z]+/(\w+)\.h)"(?: +// (.*))?$')
ALONE = re.compile(r"#ifndef GNI_ROOMS\b.*\n(?:#(?:include|define|pragma) .*\n)*#endif\b.*\n\n?")
FIRST = ("// gpunum.h - version %s - made by tools/make_header.py from the rooms in tools/gpunum/: change those, not this\n"
         "// MIT or public domain (LICENSE)\n")


def read(name):
    with open(os.path.join(ROOMS, name), encoding="utf-8") as f:
        return f.read()


def rooms():
    """[(path, name, what lives there)] in the order of the list."""
    found = [INCLUDE.match(line) for line in read("gpunum.h").split("\n")]
    return [m.groups() for m in found if m]


def joined():
    listed = rooms()
    names = [name for _, name, _ in listed]
    on_disk = {os.path.relpath(os.path.join(folder, f), ROOMS).replace(os.sep, "/")
               for folder, _, files in os.walk(ROOMS) for f in files if f.endswith(".h")}
    missing = on_disk - {path for path, _, _ in listed} - {"gpunum.h"}
    if missing or len(set(names)) != len(names):
        sys.exit("tools/gpunum/gpunum.h: not listed, or listed twice: %s" % (sorted(missing) or names))
    contents = "".join("//     %-16s %s\n" % (name, what) for _, name, what in listed if what)
    version = re.search(r"#define GPUNUM_VERSION (\d+)", read("api/types.h")).group(1)
    number = int(version)
    out = FIRST % ("%d.%d.%d" % (number // 10000, number // 100 % 100, number % 100))
    for line in read("gpunum.h").split("\n")[2:]:
        m = INCLUDE.match(line)
        if line.startswith("#define GNI_ROOMS"):
            continue
        if not m:
            out += line + "\n"
            continue
        path, name, what = m.groups()
        text = ALONE.sub("", read(path))
        if name != "manual" and not text.startswith("// >>%s\n" % name):
            sys.exit("tools/gpunum/%s does not begin with // >>%s" % (path, name))
        if not what and name != "manual":
            sys.exit("tools/gpunum/gpunum.h: %s: say what lives there" % path)
        out += text.replace("//     CONTENTS\n", contents)
        out += "\n" if not text.endswith("\n\n") else ""
    return re.sub(r"\n{3,}", "\n\n", out).rstrip("\n") + "\n"


def main():
    text, path = joined(), os.path.join(ROOT, "gpunum.h")
    if sys.argv[1:] == ["--check"]:
        with open(path, encoding="utf-8") as f:
            if f.read() != text:
                sys.exit("gpunum.h is not what the rooms give: run tools/make_header.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    print("gpunum.h: %d rooms, %d lines, %d bytes" % (len(rooms()), text.count("\n"), len(text)))


if __name__ == "__main__":
    main()
