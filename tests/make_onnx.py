#!/usr/bin/env python3
"""Writes the ONNX backend tests of nodes as cases for test_onnx.c.

    make_onnx.py FOLDER FILE

FOLDER is data/node of Debian's package libonnx-testdata (onnx/onnx, onnx/backend/test/data/node): each test is a model of one
node, or of the few that make up its op, and some inputs and outputs. Of the messages in which they are written (onnx.proto)
this reads what such tests have. A case is the test's name, its op, and why it cannot be told as arrays; if it can: inputs,
nodes in their order with attributes and the numbers of their values, outputs.
"""
import os
import struct
import sys

import numpy as np

from make_cases import CODE, array, text

# TensorProto.DataType, NumPy's dtype, and the field that has the elements where raw_data does not.
TYPES = {1: ('float32', 4), 2: ('uint8', 5), 3: ('int8', 5), 4: ('uint16', 5), 5: ('int16', 5), 6: ('int32', 5), 7: ('int64', 7),
         9: ('bool', 5), 10: ('float16', 5), 11: ('float64', 10), 12: ('uint32', 11), 13: ('uint64', 11), 16: ('bfloat16', 5)}


class Unreadable(Exception):
    pass


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def fields(data):
    """What a message says: number -> the values in their order, numbers or bytes."""
    at, found = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError('wire type %d' % kind)
        found.setdefault(key >> 3, []).append(value)
    return found


def repeated(values, form):
    """A list of numbers, packed or not: form is 'f', 'd', or 'i' for varints."""
    out = []
    for v in values:
        if isinstance(v, int):
            out.append(signed(v))
        elif form == 'i':
            at = 0
            while at < len(v):
                x, at = varint(v, at)
                out.append(signed(x))
        else:
            out += np.frombuffer(v, '<f4' if form == 'f' else '<f8').tolist()
    return out


def tensor(data, declared=None):
    """dtype's name, and the elements; those of bfloat16 as uint16, which is what some files call them"""
    m = fields(data)
    shape = repeated(m.get(1, []), 'i')
    code = m.get(2, [0])[0]
    if code == 8:
        raise Unreadable('text')
    name, field = TYPES[code]
    stored = np.dtype('uint16' if name == 'bfloat16' else name)
    if 9 in m:
        values = np.frombuffer(m[9][0], stored.newbyteorder('<'))
    else:
        numbers = repeated(m.get(field, []), {4: 'f', 10: 'd'}.get(field, 'i'))
        if name in ('float16', 'bfloat16'):  # their bits
            values = np.array(numbers, np.uint16).view(stored)
        else:
            values = np.array(numbers).astype(stored)
    return 'bfloat16' if (name, declared) == ('uint16', 16) else name, values.reshape(shape)


def packed(t):
    name, values = t
    return struct.pack('<i', CODE[name]) + array(values)[4:]


def attribute(data):
    m = fields(data)
    kind = m.get(20, [0])[0]
    if kind in (1, 6):
        values = repeated(m.get(2 if kind == 1 else 7, []), 'f')
        body = struct.pack('<ii%dd' % len(values), 1, len(values), *values)
    elif kind in (2, 7):
        values = repeated(m.get(3 if kind == 2 else 8, []), 'i')
        body = struct.pack('<ii%dq' % len(values), 2, len(values), *values)
    elif kind == 3:
        body = struct.pack('<i', 3) + text(m[4][0].decode())
    elif kind == 4:
        body = struct.pack('<i', 4) + packed(tensor(m[5][0]))
    else:
        raise Unreadable('a list of text' if kind == 8 else 'a graph inside the node')
    return text(m[1][0].decode()) + body


def values(folder, which, names, declared, numbers):
    """The arrays of input_0.pb and so on, each behind its value's number."""
    out = []
    for i, name in enumerate(names):
        kind = fields(declared[name])
        if 1 not in kind:  # TypeProto.tensor_type
            raise Unreadable('a sequence or optional')
        with open(os.path.join(folder, 'test_data_set_0', '%s_%d.pb' % (which, i)), 'rb') as f:
            t = tensor(f.read(), fields(kind[1][0]).get(1, [None])[0])
        out.append(struct.pack('<i', numbers[name]) + packed(t))
    return struct.pack('<i', len(out)) + b''.join(out)


def node(m, numbers):
    attributes = [attribute(a) for a in m.get(5, [])]
    parts = [text(m[4][0].decode()), struct.pack('<i', len(attributes))] + attributes
    for names in (m.get(1, []), m[2]):  # -1: left out
        parts.append(struct.pack('<i', len(names)))
        parts += [struct.pack('<i', numbers[name] if name else -1) for name in names]
    return b''.join(parts)


def case(folder):
    with open(os.path.join(folder, 'model.onnx'), 'rb') as f:
        graph = fields(fields(f.read())[7][0])
    nodes = [fields(n) for n in graph[1]]
    op = nodes[0][4][0].decode() if len(nodes) == 1 else 'several'
    head = text(os.path.basename(folder)) + text(op)
    declared, inputs, outputs = {}, [], []
    for names, infos in ((inputs, graph.get(11, [])), (outputs, graph.get(12, []))):
        for info in infos:
            m = fields(info)
            declared[m[1][0]] = m[2][0]
            names.append(m[1][0])
    numbers = {}
    for name in inputs + [n for m in nodes for n in m.get(1, []) + m[2]]:
        if name:
            numbers.setdefault(name, len(numbers))
    try:
        if 5 in graph:
            raise Unreadable('initializers')
        return (head + text('') + values(folder, 'input', inputs, declared, numbers) + struct.pack('<i', len(nodes))
                + b''.join(node(m, numbers) for m in nodes) + values(folder, 'output', outputs, declared, numbers))
    except Unreadable as why:
        return head + text(str(why))


def main():
    folder, out = sys.argv[1:]
    names = sorted(n for n in os.listdir(folder) if os.path.isfile(os.path.join(folder, n, 'model.onnx')))
    with open(out, 'wb') as f:
        f.write(struct.pack('<i', len(names)))
        for name in names:
            f.write(case(os.path.join(folder, name)))


if __name__ == '__main__':
    main()
