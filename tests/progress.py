#!/usr/bin/env python3
"""Passes CTest's output on, and says between its lines how far it is and about how long the rest takes.

    ctest ... | tests/progress.py JOBS NAME ...   estimates for these tests from tests/seconds.txt
    tests/progress.py --write ctest.log ...     writes that file anew from logs of whole runs

tests/seconds.txt holds NAME SECONDS for each test on 2 cores; CMake takes the order of starting from it as well,
longest first. A test that is not in it counts as one of 5 seconds.
"""
import os
import re
import sys
import time

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "seconds.txt")
DONE = re.compile(r" *(\d+)/(\d+) Test +#\d+: (\S+) \.*.* ([0-9.]+) sec")
START = re.compile(r" *Start +\d+: (\S+)")
EVERY = 20.0  # seconds between two estimates


def recorded():
    if not os.path.exists(FILE):
        return {}
    with open(FILE) as f:
        return {name: float(seconds) for name, seconds in (line.split() for line in f if line[0] != "#")}


def write(logs):
    seconds = recorded()
    for log in logs:
        with open(log, errors="replace") as f:
            seconds.update((m.group(3), float(m.group(4))) for m in map(DONE.match, f) if m)
    with open(FILE, "w") as f:
        f.write("# Seconds of each test on 2 cores, by tests/progress.py --write.\n")
        f.writelines("%s %d\n" % (name, round(s)) for name, s in sorted(seconds.items(), key=lambda x: (-round(x[1]), x[0])))


def left(expected, done, running, jobs):
    """Seconds. What runs counts with what it has left, at the pace of what has ended."""
    usual = sum(expected[n] for n in done)
    pace = (sum(done.values()) + 30.0) / (usual + 30.0)
    rest = [max(expected[n] * pace - (time.time() - t), 1.0) for n, t in running.items()]
    waiting = sum(s for n, s in expected.items() if n not in done and n not in running)
    return max([(sum(rest) + pace * waiting) / jobs] + rest)


def follow(jobs, names):
    seconds, done, running, said = recorded(), {}, {}, 0.0
    expected = {name: seconds.get(name, 5.0) for name in names}
    for line in iter(sys.stdin.readline, ""):
        sys.stdout.write(line)
        m = START.match(line)
        if m:
            running[m.group(1)] = time.time()
            expected.setdefault(m.group(1), 5.0)
        m = DONE.match(line)
        if m:
            total, name = int(m.group(2)), m.group(3)
            done[name] = float(m.group(4))
            running.pop(name, None)
            if time.time() - said >= EVERY and len(done) < total:
                said = time.time()
                minutes = left(expected, done, running, jobs) / 60.0
                print("-- %d/%d done, about %s left" % (len(done), total, "%d min" % round(minutes) if minutes >= 1.0
                                                       else "a minute"))
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2:])
    else:
        sys.stdin.reconfigure(errors="replace")
        sys.stdout.reconfigure(errors="replace")
        follow(max(int(sys.argv[1]), 1), sys.argv[2:])
