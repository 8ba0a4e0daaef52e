#!/usr/bin/env python3
"""Runs examples/spectrum.c on WAV files of all kinds and on broken ones: check_spectrum.py SPECTRUM"""
import math
import os
import struct
import subprocess
import sys
import zlib

RATE = 16000
COUNT = 8192
TONE = 3000.0
LEVELS, PAPER, INK = 240, 240, 241  # the colours' numbers
LEFT, RIGHT, TOP, BOTTOM = 48, 72, 26, 32  # around the spectrogram
PCM, FLOAT, EXTENSIBLE = 1, 3, 0xfffe


def encode(v, kind, bits):
    if kind == FLOAT:
        return struct.pack('<f' if bits == 32 else '<d', v)
    if bits == 8:
        return bytes([128 + round(v * 100)])
    return round(v * (2 ** (bits - 1) - 1)).to_bytes(bits // 8, 'little', signed=True)


def chunk(name, data, size=None):
    size = len(data) if size is None else size
    return name + struct.pack('<I', size) + data + b'\0' * (size % 2)


def wav(kind, bits, channels, extra=b'', extensible=False, count=COUNT, size=None, start=0):
    """A tone on all channels from sample `start` on, half as loud on the second one."""
    frame = channels * bits // 8
    form = struct.pack('<HHIIHH', EXTENSIBLE if extensible else kind, channels, RATE, RATE * frame, frame, bits)
    if extensible:
        form += struct.pack('<HHIH14s', 22, bits, 3, kind, b'\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71')
    wave = (0.9 * math.sin(2 * math.pi * TONE * i / RATE) * (i >= start) for i in range(count))
    data = b''.join(encode(v if c == 0 else v / 2, kind, bits) for v in wave for c in range(channels))
    body = b'WAVE' + chunk(b'fmt ', form) + extra + chunk(b'data', data, size)
    return b'RIFF' + struct.pack('<I', len(body)) + body


def pixels(path):
    """Rows of a PNG with a palette and without filters."""
    with open(path, 'rb') as f:
        png = f.read()
    assert png[:8] == b'\x89PNG\r\n\x1a\n'
    at, data = 8, b''
    while at < len(png):
        size, = struct.unpack('>I', png[at:at + 4])
        name, body = png[at + 4:at + 8], png[at + 8:at + 8 + size]
        assert struct.unpack('>I', png[at + 8 + size:at + 12 + size])[0] == zlib.crc32(name + body), name
        if name == b'IHDR':
            width, height, depth, colour = struct.unpack('>IIBB', body[:10])
            assert (depth, colour) == (8, 3)
        if name == b'PLTE':
            colours = [tuple(body[i:i + 3]) for i in range(0, size, 3)]
            bright = [0.3 * r + 0.59 * g + 0.11 * b for r, g, b in colours[:LEVELS]]
            assert bright == sorted(bright) and colours[PAPER:] == [(255, 255, 255), (0, 0, 0)]
        if name == b'IDAT':
            data += body
        at += 12 + size
    raw = zlib.decompress(data)
    assert len(raw) == height * (width + 1)
    rows = [raw[y * (width + 1):(y + 1) * (width + 1)] for y in range(height)]
    assert all(row[0] == 0 for row in rows)
    assert max(max(row[1:]) for row in rows) == INK
    return [row[1:] for row in rows]


def inside(rows):
    """The spectrogram without what is around it."""
    return [row[LEFT:-RIGHT] for row in rows[TOP:-BOTTOM]]


def check_axes(program):
    """Two seconds of which the second has the tone: where it lies by the ticks, not by pixels."""
    done = run(program, wav(PCM, 16, 1, count=2 * RATE, start=RATE))
    assert done.returncode == 0, done.stderr
    rows = pixels('out.png')
    plot = inside(rows)
    kilohertz = [TOP + y for y, row in enumerate(rows[TOP:-BOTTOM]) if row[LEFT - 3] == INK][::-1]  # ticks from below
    assert len(kilohertz) == 9, kilohertz  # 0 to 8
    last = [row[-1] for row in plot]
    assert TOP + last.index(max(last)) == kilohertz[3]
    seconds = [x for x, v in enumerate(rows[-BOTTOM + 3]) if v == INK]
    assert len(seconds) == 2, seconds  # 0 and 1
    one = seconds[1]
    tone = plot[kilohertz[3] - TOP]
    assert max(tone[:one - LEFT - 4]) < 60 and min(tone[one - LEFT + 1:]) > 200, (one, list(tone))
    bar = [row[-RIGHT + 20] for row in rows[TOP:-BOTTOM]]
    assert bar[0] == LEVELS - 1 and bar[-1] == 0 and bar == sorted(bar, reverse=True)


def run(program, data):
    with open('in.wav', 'wb') as f:
        f.write(data)
    if os.path.exists('out.png'):
        os.remove('out.png')
    return subprocess.run([program, 'in.wav', 'out.png'], capture_output=True, text=True, timeout=100)


def main():
    program = sys.argv[1]
    odd = chunk(b'LIST', b'odd') + chunk(b'junk', b'')
    good = [wav(kind, bits, channels, extra, extensible)
            for kind, sizes in ((PCM, (8, 16, 24, 32)), (FLOAT, (32, 64))) for bits in sizes
            for channels, extra, extensible in ((1, b'', False), (2, odd, False), (3, b'', True))]
    good.append(wav(PCM, 16, 1) + chunk(b'LIST', b'behind'))
    good.append(wav(PCM, 16, 1, size=0xfffffff0))  # as written by a program that did not know the length
    good.append(wav(PCM, 16, 2)[:-1001])
    for i, data in enumerate(good):
        done = run(program, data)
        assert done.returncode == 0, (i, done.stdout, done.stderr)
        rows = inside(pixels('out.png'))
        assert len(rows) == 513 and len(rows[0]) >= 20, (i, len(rows), len(rows[0]))
        # The brightest row is the tone's; the top one is half the rate.
        middle = [row[len(row) // 2] for row in rows]
        brightest = 512 - middle.index(max(middle))
        assert brightest == round(TONE / RATE * 1024), (i, brightest)
        # 8 bits leave noise at -50 dB; nothing else is as bright as a quarter of the range below.
        others = [v for k, v in enumerate(middle) if abs(512 - k - brightest) > 8]
        assert max(others) < 200 * LEVELS / 256, (i, max(others))
    check_axes(program)
    fine = wav(PCM, 16, 1)
    broken = [b'', b'RIFF', b'nonsense' * 1000, fine[:20], fine[:44], fine[:60], b'RIFX' + fine[4:],
              wav(PCM, 16, 1, count=100), wav(PCM, 16, 0, count=0), wav(PCM, 12 // 4 * 4, 1, count=0),
              fine.replace(b'fmt ', b'fmx '), fine[:20] + struct.pack('<H', 2) + fine[22:],  # ADPCM
              fine[:22] + struct.pack('<H', 0) + fine[24:], fine[:22] + struct.pack('<H', 65535) + fine[24:],
              fine[:24] + struct.pack('<I', 0) + fine[28:], fine[:34] + struct.pack('<H', 40) + fine[36:],
              fine[:16] + struct.pack('<I', 4) + fine[20:], fine[:16] + struct.pack('<I', 0xffffffff) + fine[20:]]
    for i, data in enumerate(broken):
        done = run(program, data)
        assert done.returncode == 1 and 'in.wav' in done.stderr, (i, done.returncode, done.stderr)
        assert not os.path.exists('out.png'), i
    done = subprocess.run([program, 'missing.wav', 'out.png'], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and done.stderr == 'missing.wav: cannot be opened: No such file or directory\n', done.stderr
    done = subprocess.run([program, 'in.wav', 'no/such/folder.png'], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    with open('in.wav', 'wb') as f:
        f.write(fine)
    done = subprocess.run([program, 'in.wav', 'no/such/folder.png'], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and 'no/such/folder.png' in done.stderr
    print(f'{len(good)} files drawn, {len(broken)} refused')


main()
