#!/usr/bin/env python3
"""Makes a PNG smaller: the examples write theirs without compressing them.

    tools/pack_png.py in.png out.png

The README's picture:  spectrum && tools/pack_png.py spectrum.png examples/spectrum.png
"""
import struct
import sys
import zlib


def chunks(png):
    at = 8
    while at < len(png):
        size, = struct.unpack(">I", png[at:at + 4])
        yield png[at + 4:at + 8], png[at + 8:at + 8 + size]
        at += 12 + size


def main():
    with open(sys.argv[1], "rb") as f:
        png = f.read()
    parts = list(chunks(png))
    pixels = zlib.decompress(b"".join(body for name, body in parts if name == b"IDAT"))
    out = png[:8]
    for name, body in parts:
        if name == b"IDAT":
            if pixels is None:
                continue
            body, pixels = zlib.compress(pixels, 9), None
        out += struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    with open(sys.argv[2], "wb") as f:
        f.write(out)


main()
