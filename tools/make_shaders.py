#!/usr/bin/env python3
"""Compiles tools/shaders/*.comp into shaders.h.

  make_shaders.py            compile what changed, write shaders.h
  make_shaders.py --all      compile everything, write shaders.h
  make_shaders.py --check    no compiler: is shaders.h up to date? names what is stale
  make_shaders.py --verify   compile everything, compare bit for bit what shaders.h decodes to, run spirv-val

A .comp file says in comment lines which modules it becomes:

  //! variant NAME [-DX=Y ...] [--env=vulkan1.3] [--bfloat16] [--no-bindings]   one module; without such a
                                                    line the file is one module of its own name
  //! no-bindings                                   for all of the file, see below

Each variant becomes two modules: NAME, whose buffers are 64-bit addresses, and NAME_b, compiled
with -DGN_BINDINGS, whose buffers are descriptors; "no-bindings" leaves the second out.
#include "x.glsl" is looked up beside the .comp files. --bfloat16 turns every float16_t of the module
into bfloat16, which glslang before 15.4 has no name for.

spirv-opt then shortens most modules, see PASSES.

A module's hash is the SHA-256 of: the bytes of the .comp file, the bytes of every included file in
the order of first inclusion (found by reading #include lines as text, whatever #if says), and the
module's options string, which shaders.h lists.
"""
import argparse
import concurrent.futures
import hashlib
import lzma
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

import pack_shaders

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
JOBS = 2
SPIRV_MAGIC = 0x07230203
# OpSourceContinued, OpSource, OpSourceExtension, OpName, OpMemberName, OpLine, OpNoLine,
# OpModuleProcessed: text for people, which would only make the header larger.
DEBUG_OPS = {2, 3, 4, 5, 6, 8, 317, 330}
# What spirv-opt does with a module: values in place of local variables, and nothing twice. Drivers then have
# less to read. Passes that fold floating-point instructions are not among them.
PASSES = ["--eliminate-local-single-block", "--eliminate-local-single-store", "--ssa-rewrite",
          "--eliminate-dead-code-aggressive", "--redundancy-elimination",
          "--eliminate-dead-code-aggressive", "--merge-blocks"]
# Files whose modules stay as they are: float32 products are a percent slower on an H200 afterwards, and what
# spirv-opt makes of cooperative matrices some drivers do not take.
AS_COMPILED = ("matmul", "split", "attention", "recur_half")

# Files whose modules are packed together since they have much in common, those that programs need first in front: a
# block is decoded as far as it is needed. The other files are blocks of their own.
TOGETHER = {"elementwise": ["elementwise_small", "reduce_small", "elementwise_fast", "reduce_fast", "elementwise",
                            "reduce"],
            "matmul": ["matmul", "matmul_half"], "attention": ["attend", "attention"], "fft": ["fft_wide", "fft_any", "fft"],
            "factor": ["factor_small", "factor", "sweep", "eigen"], "matvec": ["matvec", "products", "split", "winograd"],
            "rows": ["rows", "softmax", "sums", "pool", "depth", "image", "recur", "recur_half"],
            "take": ["take", "scatter", "find", "keep", "random", "draw", "count", "weigh", "sort", "select", "top", "scan_fast", "scan",
                     "reflect", "reflect_load"]}

HEAD = """\
// shaders.h - gpunum's compute shaders as SPIR-V. Public domain or MIT, see LICENSE.
//
// Generated from tools/shaders/*.comp by tools/make_shaders.py: do not edit.
// gpunum.h includes this file where its implementation needs it, and says in room unpack how the modules are packed.
#ifdef GNI_SHADERS_WANTED
#ifndef GNI_SHADERS_H
#define GNI_SHADERS_H

#include <stdint.h>

#define GNI_SHADERS_COMPILER "%(compiler)s"

// Blocks of modules. X(name, characters, bytes that they decode to)
// clang-format off
#define GNI_MODULE_BLOCKS(X)%(blocks)s

// X(name, block, first byte in it, bytes in it, words of SPIR-V, CRC-32 of these, hash of the source, compiler,
//   source file, options)
#define GNI_MODULES(X)%(rows)s
"""

TAIL = """\
// clang-format on

typedef struct gni_module_block {
    const char *text;
    uint32_t characters, bytes;
} gni_module_block;

typedef enum gni_module_block_id {
#define GNI_X(name, characters, bytes) GNI_MODULE_BLOCK_##name,
    GNI_MODULE_BLOCKS(GNI_X)
#undef GNI_X
    GNI_MODULE_BLOCK_COUNT
} gni_module_block_id;

// One more than there are: the last is empty, so that no table is of size zero.
static const gni_module_block gni_module_blocks[GNI_MODULE_BLOCK_COUNT + 1] = {
#define GNI_X(name, characters, bytes) {gni_module_text_##name[0], characters, bytes},
    GNI_MODULE_BLOCKS(GNI_X)
#undef GNI_X
    {"", 0, 0}
};

typedef struct gni_module {
    const char *name;
    uint32_t block, start, bytes, words;
} gni_module;

typedef enum gni_module_id {
#define GNI_X(name, block, start, bytes, words, crc, hash, compiler, file, options) GNI_MODULE_##name,
    GNI_MODULES(GNI_X)
#undef GNI_X
    GNI_MODULE_COUNT
} gni_module_id;

static const gni_module gni_modules[GNI_MODULE_COUNT + 1] = {
#define GNI_X(name, block, start, bytes, words, crc, hash, compiler, file, options) \\
    {#name, GNI_MODULE_BLOCK_##block, start, bytes, words},
    GNI_MODULES(GNI_X)
#undef GNI_X
    {"", 0, 0, 0, 0}
};

#endif // GNI_SHADERS_H
#endif // GNI_SHADERS_WANTED
"""


class Problem(Exception):
    pass


class Module:
    """One (file, variant, bindings) and, once known, its words."""

    def __init__(self, name, file, env, defines, bfloat16, blob):
        self.name, self.file, self.env, self.defines = name, file, env, defines
        self.bfloat16, self.optimise = bfloat16, not file.startswith(AS_COMPILED)
        self.options = " ".join(["--target-env=" + env] + ["--optimise"] * self.optimise +
                                ["--bfloat16"] * bfloat16 + defines)
        self.hash = hashlib.sha256(blob + self.options.encode()).hexdigest()[:16]
        self.words, self.compiler, self.start, self.bytes = None, None, 0, 0
        stem = file[:-len(".comp")]
        self.block = next((b for b, files in TOGETHER.items() if stem in files), stem)
        self.place = TOGETHER.get(self.block, [stem]).index(stem)

    def take(self, held):
        self.words, self.compiler, self.start, self.bytes = held.words, held.compiler, held.start, held.bytes

    def row(self):
        return '%s, %s, %d, %d, %d, 0x%08x, "%s", "%s", "%s", "%s"' % (
            self.name, self.block, self.start, self.bytes, len(self.words), crc(self.words), self.hash, self.compiler,
            self.file, self.options)


# --- sources ------------------------------------------------------------------------------------

def read_sources(folder, name, seen):
    """Bytes of a file and of everything it includes, each once, in order of first inclusion."""
    seen.add(name)
    try:
        with open(os.path.join(folder, name), "rb") as f:
            blob = f.read()
    except OSError as e:
        raise Problem("%s: %s" % (name, e.strerror))
    parts = [blob]
    for include in re.findall(rb'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', blob, re.M):
        include = include.decode()
        if include not in seen:
            parts.append(read_sources(folder, include, seen))
    return b"".join(parts)


def read_variants(file, text):
    """What the //! lines ask for: [(name, env, defines, bfloat16)], and which of these have a form with descriptors."""
    variants, bindings, without = [], True, set()
    for line in re.findall(r"^//!(.*)$", text, re.M):
        words = line.split()
        if words == ["no-bindings"]:
            bindings = False
        elif len(words) >= 2 and words[0] == "variant":
            env, defines, bfloat16 = "vulkan1.2", [], False
            for word in words[2:]:
                if word.startswith("--env="):
                    env = word[len("--env="):]
                elif word == "--bfloat16":
                    bfloat16 = True
                elif word == "--no-bindings":
                    without.add(words[1])
                elif re.match(r"-D\w", word):
                    defines.append(word)
                else:
                    raise Problem("%s: '%s' in a variant line" % (file, word))
            variants.append((words[1], env, defines, bfloat16))
        else:
            raise Problem("%s: cannot read the line '//!%s'" % (file, line))
    variants = variants or [(file[:-len(".comp")], "vulkan1.2", [], False)]
    return variants, {v[0] for v in variants if bindings} - without


def read_modules(folder):
    modules = {}
    for file in sorted(f for f in os.listdir(folder) if f.endswith(".comp")):
        blob = read_sources(folder, file, set())
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            variants, bindings = read_variants(file, f.read())
        for name, env, defines, bfloat16 in variants:
            found = [Module(name, file, env, defines, bfloat16, blob)]
            if name in bindings:
                found.append(Module(name + "_b", file, env, defines + ["-DGN_BINDINGS"], bfloat16,
                                    blob))
            for m in found:
                if not re.fullmatch(r"[a-z][a-z0-9_]*", m.name):
                    raise Problem("%s: '%s' is no module name" % (file, m.name))
                if m.name in modules:
                    raise Problem("%s: module %s is also in %s" % (file, m.name,
                                                                  modules[m.name].file))
                modules[m.name] = m
    return modules


# --- compiler -----------------------------------------------------------------------------------

class Tools:
    def __init__(self, folder):
        self.folder = folder or os.path.join(ROOT, "build", "shader-tools", "bin")
        if not folder and not os.path.exists(os.path.join(self.folder, "glslang")):
            subprocess.run([os.path.join(ROOT, "tools", "shader_tools.sh")], check=True)
        text = self.run(["glslang", "--version"])
        match = re.search(r"^Glslang Version: \d+:([\d.]+)", text, re.M)
        if not match:
            raise Problem("cannot read glslang's version")
        self.version = "glslang " + match.group(1)
        match = re.search(r"^SPIRV-Tools v([\d.]+)", self.run(["spirv-opt", "--version"]), re.M)
        if not match:
            raise Problem("cannot read spirv-opt's version")
        self.version += ", spirv-opt " + match.group(1)

    def run(self, args):
        args = [os.path.join(self.folder, args[0])] + args[1:]
        p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           universal_newlines=True)
        if p.returncode:
            raise Problem(p.stdout.strip() or "%s: exit status %d" % (args[0], p.returncode))
        return p.stdout

    def compile(self, m, folder):
        with tempfile.TemporaryDirectory() as tmp:
            out = os.path.join(tmp, "out.spv")
            text = self.run(["glslang", "-V", "--quiet", "--target-env", m.env, "-S", "comp",
                             "-I" + folder] + m.defines +
                            ["-o", out, os.path.join(folder, m.file)])
            if text.strip():
                sys.stderr.write("%s: %s\n" % (m.name, text.strip()))
            if m.optimise:
                self.run(["spirv-opt", "--target-env=" + m.env] + PASSES + [out, "-o", out])
            with open(out, "rb") as f:
                words = strip(to_words(f.read()))
        return with_bfloat16(words) if m.bfloat16 else words

    def validate(self, m):
        if m.bfloat16:
            return  # spirv-val 2025.1 does not know the type; the float16 twin is checked
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, m.name + ".spv")
            with open(path, "wb") as f:
                f.write(b"".join(w.to_bytes(4, "little") for w in m.words))
            try:
                self.run(["spirv-val", "--target-env", m.env, path])
            except Problem as e:
                raise Problem("%s: spirv-val: %s" % (m.name, e))


def to_words(data, module=True):
    words = [int.from_bytes(data[i:i + 4], "little") for i in range(0, len(data), 4)]
    if module and (len(data) % 4 or len(words) < 5 or words[0] != SPIRV_MAGIC):
        raise Problem("the compiler's output is not SPIR-V")
    return words


def strip(words):
    kept, i = words[:5], 5
    while i < len(words):
        count, op = words[i] >> 16, words[i] & 0xffff
        if op not in DEBUG_OPS:
            kept += words[i:i + count]
        i += count
    return kept


def with_bfloat16(words):
    """Another format for every 16-bit float, and the capabilities and extension that it needs."""
    name = b"SPV_KHR_bfloat16\0"
    extension = to_words(name + b"\0" * (-len(name) % 4), False)
    kept, i, declared = words[:5], 5, False
    while i < len(words):
        count, op = words[i] >> 16, words[i] & 0xffff
        instruction = words[i:i + count]
        if op == 17 and instruction[1] == 9:  # OpCapability Float16: BFloat16TypeKHR and ...CooperativeMatrixKHR
            instruction = [2 << 16 | 17, 5116, 2 << 16 | 17, 5118]
        elif op == 10 and not declared:  # OpExtension
            instruction = [(1 + len(extension)) << 16 | 10] + extension + instruction
            declared = True
        elif op == 22 and instruction[2] == 16:  # OpTypeFloat 16: BFloat16KHR
            instruction = [4 << 16 | 22, instruction[1], 16, 0]
        kept += instruction
        i += count
    return kept


def for_each(modules, work):
    """Runs work(module) on two threads and reports every failure, not just the first."""
    def guarded(m):
        try:
            work(m)
            return None
        except Problem as e:
            return "%s: %s" % (m.name, e) if m.name not in str(e) else str(e)
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        errors = [e for e in pool.map(guarded, modules) if e]
    if errors:
        raise Problem("\n".join(errors))


# --- shaders.h ----------------------------------------------------------------------------------

class Block:
    """Modules packed together: lines of text and the number of bytes of their tokens."""

    def __init__(self, lines, size):
        self.lines, self.size = lines, size


def crc(words):
    return zlib.crc32(struct.pack("<%dI" % len(words), *words))


def in_blocks(modules):
    """{name of the block: [modules in their order there]}"""
    blocks = {}
    for m in sorted(modules, key=lambda m: m.place):
        blocks.setdefault(m.block, []).append(m)
    return dict(sorted(blocks.items()))


def pack(modules):
    tokens, starts = pack_shaders.tokens([m.words for m in modules])
    for m, start, end in zip(modules, starts, starts[1:] + [len(tokens)]):
        m.start, m.bytes = start, end - start
    return Block(pack_shaders.squeeze(tokens), len(tokens))


def listed(rows):
    return "".join(" \\\n    X(%s)" % row for row in rows)


def render(modules, blocks, compiler):
    text = [HEAD % {"compiler": compiler, "rows": listed(m.row() for m in modules),
                    "blocks": listed("%s, %d, %d" % (n, sum(map(len, b.lines)), b.size)
                                     for n, b in blocks.items())}]
    for n, b in blocks.items():
        text.append("\nstatic const char gni_module_text_%s[][%d] = {\n%s};\n" % (
            n, len(b.lines[0]) + 1, "".join('    "%s",\n' % line for line in b.lines)))
    return "".join(text) + TAIL


class Held:
    """A module as shaders.h has it."""

    def __init__(self, row, blocks):
        self.block, self.hash, self.compiler = row[1], row[6], row[7]
        self.start, self.bytes, count = (int(v) for v in row[2:5])
        try:
            self.words = pack_shaders.words_of(blocks[self.block], self.start, count)
        except (KeyError, IndexError):
            self.words = []
        if crc(self.words) != int(row[5], 16):
            raise Problem("shaders.h: %s is damaged" % row[0])


def read_header(path):
    """What shaders.h holds: its text, {name: Held} and {name: Block}."""
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    except OSError:
        return "", {}, {}
    blocks, decoded, held = {}, {}, {}
    for name, body in re.findall(r"^static const char gni_module_text_(\w+)\[\]\[\d+\] = \{\n(.*?)^\};", text,
                                 re.M | re.S):
        size = re.search(r"^    X\(%s, \d+, (\d+)\)" % name, text, re.M)
        if size:
            blocks[name] = Block(re.findall('"(.*)"', body), int(size.group(1)))
            try:
                decoded[name] = pack_shaders.expand(blocks[name].lines, blocks[name].size)
            except lzma.LZMAError:
                raise Problem("shaders.h: block %s is damaged" % name)
    for row in re.findall(r'^    X\((\w+), (\w+), (\d+), (\d+), (\d+), 0x(\w+), "(\w+)", "([^"]*)"', text, re.M):
        held[row[0]] = Held(row, decoded)
    return text, held, blocks


def compiler_in(text):
    match = re.search(r'^#define GNI_SHADERS_COMPILER "([^"]*)"', text, re.M)
    return match.group(1) if match else ""


def check(modules, header):
    """Is shaders.h what its sources and its own words would be rendered to? How they are packed does not matter:
    encoders differ."""
    text, held, blocks = read_header(header)
    if not text:
        raise Problem("%s is missing" % os.path.basename(header))
    stale = ["%s (%s) is not in shaders.h" % (n, m.file)
             for n, m in modules.items() if n not in held]
    stale += ["%s is in shaders.h, but has no source" % n for n in held if n not in modules]
    stale += ["%s: %s or a file it includes has changed" % (n, m.file)
              for n, m in modules.items() if n in held and held[n].hash != m.hash]
    if not stale:
        for n, m in modules.items():
            m.take(held[n])
        if render(modules.values(), blocks, compiler_in(text)) != text:
            stale = ["shaders.h was edited by hand"]
    if stale:
        raise Problem("stale shaders.h, run tools/make_shaders.py:\n  " + "\n  ".join(stale))


def verify(modules, header, folder, tools):
    """Recompiles; only the same compiler can be expected to give the same bits."""
    check(modules, header)
    others = set()

    def work(m):
        words = tools.compile(m, folder)
        if m.compiler != tools.version:
            others.add(m.compiler)
        elif words != m.words:
            raise Problem("%s: recompiling gives other words than shaders.h has" % m.name)
        tools.validate(m)
    for_each(modules.values(), work)
    for other in sorted(others):
        print("note: modules made by %s were not compared, this is %s" % (other, tools.version))


def build(modules, header, folder, tools, everything):
    text, held, blocks = "", {}, {}
    if not everything:
        text, held, blocks = read_header(header)
    todo = []
    for n, m in modules.items():
        if n in held and (held[n].hash, held[n].compiler) == (m.hash, tools.version):
            m.take(held[n])
        else:
            todo.append(m)
            m.compiler = tools.version

    def work(m):
        m.words = tools.compile(m, folder)
        tools.validate(m)
    for_each(todo, work)
    packed, news = {}, 0
    for name, members in in_blocks(modules.values()).items():
        before = sorted((h for h in held.values() if h.block == name), key=lambda h: h.start)
        if name in blocks and [h.words for h in before] == [m.words for m in members]:
            packed[name] = blocks[name]  # as it is: another encoder would only change its text
            for m, h in zip(members, before):
                m.start, m.bytes = h.start, h.bytes
        else:
            packed[name] = pack(members)
            news += 1
    new = render(modules.values(), packed, tools.version)
    if new != text:
        with open(header + ".tmp", "w", encoding="utf-8", newline="\n") as f:
            f.write(new)
        os.replace(header + ".tmp", header)
    print("shaders.h: %d modules, %d compiled, %d of %d blocks packed, %d KiB of SPIR-V in %d KiB" % (
        len(modules), len(todo), news, len(packed), sum(4 * len(m.words) for m in modules.values()) // 1024,
        len(new) // 1024))


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = p.add_mutually_exclusive_group()
    mode.add_argument("--all", action="store_true", help="compile everything")
    mode.add_argument("--check", action="store_true", help="is shaders.h up to date?")
    mode.add_argument("--verify", action="store_true", help="recompile and compare")
    p.add_argument("--sources", default=os.path.join(ROOT, "tools", "shaders"), metavar="FOLDER")
    p.add_argument("--header", default=os.path.join(ROOT, "shaders.h"), metavar="FILE")
    p.add_argument("--tools", metavar="FOLDER", help="where glslang, spirv-opt and spirv-val are")
    a = p.parse_args()
    try:
        modules = read_modules(a.sources)
        if a.check:
            check(modules, a.header)
        elif a.verify:
            verify(modules, a.header, a.sources, Tools(a.tools))
        else:
            build(modules, a.header, a.sources, Tools(a.tools), a.all)
    except (Problem, OSError, subprocess.CalledProcessError) as e:
        sys.exit("make_shaders.py: %s" % e)


if __name__ == "__main__":
    main()
