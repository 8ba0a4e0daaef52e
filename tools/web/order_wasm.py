#!/usr/bin/env python3
"""Puts the functions of a WebAssembly module into an order in which they compress well: order_wasm.py WASM_OPT MODULE

Deflate finds again what it saw in the last 32 KB. So a function follows those that it has most strings of 5 bytes in common
with: rare ones count more, and what is further back counts less. wasm-opt, which must be of the version that wrote the
module, moves the functions by names that they get for this."""
import collections
import os
import subprocess
import sys
import zlib

LENGTH = 5      # of the strings
SHORT = 200     # strings that a function has besides: a short one should not come first for a few
COMMON = 200    # a string that more functions have says nothing
DECAYS = 0.96, 0.97, 0.98 # of what a function counts, for each one behind it


def number(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def encoded(value):
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def imported(data, at):
    """How many functions the import section at `at` has."""
    count, at = number(data, at)
    functions = 0
    for _ in range(count):
        for _ in range(2):
            length, at = number(data, at)
            at += length
        kind = data[at]
        at += 1
        if kind == 0:
            functions += 1
            _, at = number(data, at)
        elif kind == 3:  # a global
            at += 2
        else:  # a table or a memory
            at += kind == 1
            flags, at = number(data, at)
            for _ in range(1 + (flags & 1)):
                _, at = number(data, at)
    return functions


def read(data):
    """(functions that are imported, the bodies of the others)"""
    at, imports, bodies = 8, 0, []
    while at < len(data):
        section, (length, body) = data[at], number(data, at + 1)
        at = body + length
        if section == 2:
            imports = imported(data, body)
        elif section == 10:
            count, body = number(data, body)
            for _ in range(count):
                length, body = number(data, body)
                bodies.append(data[body:body + length])
                body += length
    return imports, bodies


def order(bodies):
    """The best of a few orders: which decay finds it is luck."""
    strings = [{b[k:k + LENGTH] for k in range(len(b) - LENGTH + 1)} for b in bodies]
    where = collections.defaultdict(list)
    for i, s in enumerate(strings):
        for x in s:
            where[x].append(i)
    where = {x: w for x, w in where.items() if 1 < len(w) < COMMON}
    shared = [sorted(x for x in s if x in where) for s in strings]
    orders = [order_by(bodies, [len(s) + SHORT for s in strings], shared, where, decay) for decay in DECAYS]
    return min(orders, key=lambda o: len(zlib.compress(b"".join(bodies[i] for i in o), 9)))


def order_by(bodies, sizes, strings, where, decay):
    weight, score, left, out = 1.0, [0.0] * len(bodies), set(range(len(bodies))), []
    while left:
        best = max(left, key=lambda i: (score[i] / sizes[i], len(bodies[i]), i))
        left.discard(best)
        out.append(best)
        weight /= decay
        for x in strings[best]:
            for i in where[x]:
                score[i] += weight / len(where[x])
        if weight > 1e100:
            score = [s / weight for s in score]
            weight = 1.0
    return out


def main():
    tool, path = sys.argv[1:]
    with open(path, "rb") as f:
        data = f.read()
    imports, bodies = read(data)
    name = [b"i%d" % i for i in range(imports + len(bodies))]
    for place, i in enumerate(order(bodies)):
        name[imports + i] = b"%06d" % place
    names = encoded(len(name)) + b"".join(encoded(i) + encoded(len(n)) + n for i, n in enumerate(name))
    section = b"\4name\1" + encoded(len(names)) + names
    named = path + ".named"
    with open(named, "wb") as f:
        f.write(data + b"\0" + encoded(len(section)) + section)
    subprocess.run([tool, "--all-features", "--reorder-functions-by-name", "--strip-debug", "--strip-target-features", "-ol", "2", "-s", "2",
                    "--optimize-stack-ir", named, "-o", path], check=True)
    os.remove(named)


main()
