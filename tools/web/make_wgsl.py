#!/usr/bin/env python3
"""Makes WGSL of tools/shaders/*.glsl and *.comp and packs it into shaders_wgsl.h.

  make_wgsl.py            everything, writes shaders_wgsl.h
  make_wgsl.py --out DIR  and leaves the texts there
  make_wgsl.py --check    needs no tools: was shaders_wgsl.h made of these sources?

Each way is glslang, spirv-opt, a pass of our own, Tint. That pass gives operations that GLSL calls precise a form that
stays: WGSL's compilers may take (a + b) - a for b, so their results go through an or with a zero that only the device
knows (an exclusive or twice would be none).

What comes out is a block for the library, the functions of which programs are written at run time, and one for
each kernel. Both are packed as shaders.h is, see room unpack.
"""
import argparse
import hashlib
import os
import re
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import make_shaders  # noqa: E402
import pack_shaders  # noqa: E402

SHADERS = os.path.join(ROOT, "tools", "shaders")
BIN = os.path.join(ROOT, "build", "webgpu", "bin")
FRONT = """#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#define GN_BINDINGS
#define GN_WGSL
"""


def run(*args):
    p = subprocess.run([os.path.join(BIN, args[0])] + list(args[1:]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       errors="replace")
    if p.returncode:
        raise make_shaders.Problem("%s: %s" % (args[0], p.stdout[-1500:]))
    return p.stdout


def sources():
    """SHA-256 of all that shaders_wgsl.h is made of, but for the tools."""
    h = hashlib.sha256()
    names = [os.path.join(SHADERS, n) for n in sorted(os.listdir(SHADERS)) if n.endswith(".glsl")]
    for path in names + [os.path.join(SHADERS, n + ".comp") for n in FILES] + [os.path.abspath(__file__)]:
        with open(path, "rb") as f:
            h.update(f.read())
    return h.hexdigest()


# --- operations that stay as they are -----------------------------------------------------------

OP_NAME, OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR, OP_DECORATE, OP_LOAD = 5, 21, 22, 23, 71, 61
OP_FUNCTION, OP_CONSTRUCT, OP_BITCAST, OP_OR = 54, 80, 124, 197
SUMS, PRODUCTS, QUOTIENTS = {129, 131}, {133, 142}, {136}  # FAdd, FSub; FMul, VectorTimesScalar; FDiv


def hidden(parts, precise):
    """Which of the precise results have to be hidden from compilers: all but a sum that is only multiplied and a product
    that is taken once, by a precise sum. Those compilers leave alone, or join the product with its sum: that is no worse,
    since products that have to be exact are so before they are rounded."""
    ops, users, arithmetic = {}, {}, SUMS | PRODUCTS | QUOTIENTS
    for x in parts:
        op = x[0] & 0xffff
        if op in arithmetic:
            ops[x[2]] = op
        for word in x[3:] if op in arithmetic else [] if op in (OP_NAME, OP_DECORATE) else x[1:]:
            users.setdefault(word, []).append((op, x[2] if op in arithmetic else 0))
    alone = {r for r, op in ops.items() if r in precise and (
        all(by in PRODUCTS for by, _ in users.get(r, [])) if op in SUMS else
        op in PRODUCTS and [by in SUMS and y in precise for by, y in users.get(r, [])] == [True])}
    return precise - alone


def opaque(words):
    """Results with NoContraction go through an or with the variable gn_zero, see above."""
    precise, zero, types, ints, vectors = set(), None, {}, None, {}
    parts = list(pack_shaders.instructions(words))
    for x in parts:
        op = x[0] & 0xffff
        if op == OP_NAME and struct.pack("<%dI" % (len(x) - 2), *x[2:]).rstrip(b"\0") == b"gn_zero":
            zero = x[1]
        elif op == OP_DECORATE and x[2] == 42:
            precise.add(x[1])
        elif op == OP_TYPE_FLOAT and x[2] == 32:
            types[x[1]] = 1
        elif op == OP_TYPE_INT and x[2:] == [32, 0]:
            ints = x[1]
        elif op == OP_TYPE_VECTOR:
            vectors[(x[2], x[3])] = x[1]
            if types.get(x[2]) == 1:
                types[x[1]] = x[3]
    bound, out, made, body = words[3], list(words[:5]), [], False
    if zero is None:
        raise make_shaders.Problem("no gn_zero")
    wanted, secret = {1: ints}, hidden(parts, precise)
    for n in (2, 3, 4):
        wanted[n] = vectors.get((ints, n))
        if wanted[n] is None:
            wanted[n] = bound
            made.append([4 << 16 | OP_TYPE_VECTOR, bound, ints, n])
            bound += 1
    for x in parts:
        op = x[0] & 0xffff
        if op == OP_FUNCTION and not body:
            body = True
            for m in made:
                out += m
        if op == OP_DECORATE and x[2] == 42:
            continue
        if op == OP_NAME:  # Tint keeps only what is a name in WGSL
            name = struct.pack("<%dI" % (len(x) - 2), *x[2:]).split(b"\0")[0]
            name = re.sub(rb"\W", b"_", name)
            name += b"\0" * (4 - len(name) % 4)
            x = [(2 + len(name) // 4) << 16 | OP_NAME, x[1]] + list(struct.unpack("<%dI" % (len(name) // 4), name))
        if op in SUMS | PRODUCTS | QUOTIENTS and x[2] in secret and x[1] in types:
            n, result = types[x[1]], x[2]
            a, b, c, z, v = range(bound, bound + 5)
            bound += 5
            out += x[:2] + [a] + x[3:]
            out += [4 << 16 | OP_BITCAST, wanted[n], b, a, 4 << 16 | OP_LOAD, ints, z, zero]
            if n > 1:
                out += [(3 + n) << 16 | OP_CONSTRUCT, wanted[n], v] + [z] * n
            out += [5 << 16 | OP_OR, wanted[n], c, b, v if n > 1 else z]
            out += [4 << 16 | OP_BITCAST, x[1], result, c]
        else:
            out += x
    out[3] = bound
    return out


def to_wgsl(text, defines, passes, tmp):
    """WGSL of a kernel in GLSL."""
    source, spv = os.path.join(tmp, "in.comp"), os.path.join(tmp, "out.spv")
    with open(source, "w") as f:
        f.write(text)
    run("glslang", "-V", "--quiet", "--target-env", "vulkan1.1", "-S", "comp", "-I" + SHADERS, *defines, "-o", spv, source)
    if passes:
        run("spirv-opt", "--target-env=vulkan1.1", *passes, spv, "-o", spv)
    with open(spv, "rb") as f:
        words = opaque(make_shaders.to_words(f.read()))
    with open(spv, "wb") as f:
        f.write(struct.pack("<%dI" % len(words), *words))
    out = os.path.join(tmp, "out.wgsl")
    run("tint", "--format", "wgsl", "-o", out, spv)
    with open(out) as f:
        return f.read()


# --- the library --------------------------------------------------------------------------------

LOOP = r"(\w+) = 0u;\s*loop \{\s*if \(\(\w+ < (\d+)u\)\) \{\s*"
LOOP_END = r"continue;\s*\} else \{\s*break;\s*\}\s*continuing \{\s*\w+ = \(\w+ \+ 1u\);\s*\}\s*\}\s*"
SLICES = r"let \w+ = \w+;\s*[ab]\[\w+\] = gn_slices\[\((.*) \+ \(\w+ \* (\d+)u\)\)\];\s*"
STEP = re.compile(LOOP + SLICES + LOOP_END + LOOP + SLICES + LOOP_END + LOOP + r"(\w+) = 0u;\s*loop \{(?:(?!\bloop\b)[\s\S])*?"
                  r"(\w+) = \w+;\s*(?:let .*\s+)*let \w+ = b\[\w+\]\[\(\(\w+ \^ (\d)u\) % 4u\)\];\s*(?:let .*\s+)*sum\[.*\] = fma\(.*\);\s*" +
                  LOOP_END + LOOP_END)


def flat(text):
    """Of a product the innermost loops, where a step of k multiplies rows by columns, as they are once unrolled, with sums in
    variables of their own. Not every compiler of WGSL gets there by itself: arrays with indices that vary stay in memory."""
    found = STEP.search(text)
    i, groups_a, from_a, step_a, j, groups_b, from_b, step_b, row, rows, l, column, odd = found.groups()
    sums = [(r, c) for r in range(int(rows)) for c in range(int(groups_b))]
    order = "".join("xyzw"[c ^ int(odd)] for c in range(4)) # of b's elements
    lines = ["let a%d = gn_slices[%s + %du];" % (n, from_a, n * int(step_a)) for n in range(int(groups_a))]
    lines += ["let b%d = gn_slices[%s + %du]%s;" % (n, from_b, n * int(step_b), "." + order if order != "xyzw" else "") for n in range(int(groups_b))]
    lines += ["s%d_%d = fma(vec4<f32>(a%d.%s), b%d, s%d_%d);" % (r, c, r // 4, "xyzw"[r % 4], c, r, c) for r, c in sums]
    text = text.replace(found.group(0), "\n".join(lines) + "\n")
    before = "k0 = start;"
    behind = re.compile(r"(\bk0 = \(k0 \+ \d+u\);\s*\}\s*\})")
    assert text.count(before) == len(behind.findall(text)) == 1
    text = text.replace(before, "".join("var s%d_%d = sum[%d][%d];\n" % (s + s) for s in sums) + before)
    text = behind.sub("\\1\n" + "\n".join("sum[%d][%d] = s%d_%d;" % (s + s) for s in sums), text)
    for name in (i, j, row, l, column, "a", "b"): # which are left without a use
        if len(re.findall(r"\b%s\b" % name, text[text.index("fn main"):text.index("\n}\n", text.index("fn main"))])) == 1:
            text = re.sub(r"\bvar %s : .*;\s*" % name, "", text, count=1)
    return text


def closing(text, at):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i + 1
    raise make_shaders.Problem("brackets that do not close")


WHILE = re.compile(r"if \((.*)\) (?=\{\n)")
COUNTED = re.compile(r"\((\w+) < (\d+)([iu])\)\n(\w+) = \((\w+) \+ 1([iu])\);")


def finite(text):
    """All loops as those of `for`, see ending."""
    return own_variables(ending(text).replace("gn_continue;", "continue;"))


def ending(text):
    """Loops as those of `for` that end by themselves. Compilers of WGSL count the rounds of others in two words, and drivers unroll
    none of these: their arrays stay in memory. A loop of a fixed number of rounds has its own variable where nothing else
    uses that, which makes indices known too; others end after 2^32 - 1 rounds, and by a break before."""
    parts, at = [], 0
    for start in [m.start() for m in re.finditer(r"\bloop \{", text)]:
        if start < at: # within the last one
            continue
        end = closing(text, text.index("{", start))
        parts += [text[at:start], ending_loop(ending(text[start + len("loop {"):end - 1]), text[at:start])]
        at = end
    return "".join(parts) + text[at:]


LINES = r"(?:(?:let|var) \w+(?: : [^;]*)?(?: = \w+)?;\s*)*"


def ending_loop(inside, ahead):
    """Of `loop { before if (condition) { inner continue; } else { last break; } continuing { step } }`. Only functions end with a
    bracket at a line's begin. `ahead` is the text before it, where its variables begin."""
    step = inside.rfind("continuing {")
    body, step = inside[:step].rstrip(), inside[step + len("continuing {"):].rstrip()[:-1].strip()
    heads = [(m, closing(body, m.end())) for m in WHILE.finditer(body)]
    heads = [(m, end) for m, end in heads if body[end:].startswith(" else {") and closing(body, end + 6) == len(body)]
    if len(heads) != 1:
        raise make_shaders.Problem("a loop of another form: " + inside)
    head, end = heads[0]
    before, inner, last = body[:head.start()].strip(), body[head.end() + 1:end - 1].strip(), body[end + 7:-1].strip()
    if not inner.endswith("continue;") or not last.endswith("break;") or re.search(r"\b(?:continue|break);", before + last[:-6]):
        raise make_shaders.Problem("a loop of another form: " + inside)
    inner = inner[:-len("continue;")].rstrip()
    again = re.search(r"\bcontinue;", inner) is not None
    fixed = COUNTED.fullmatch("%s\n%s" % (head.group(1), step)) if not before and not again and last == "break;" else None
    if fixed and fixed.group(1) == fixed.group(4) == fixed.group(5):
        return "for (; %s; %s) {\n%s\n }" % (head.group(1), step[:-1], inner)
    counted = re.fullmatch(r"\((\w+) < (\d+)([iu])\)", head.group(1))
    if counted and not again and not own_break(inner) and re.fullmatch(LINES, before + "\n"):
        name, most, kind = counted.groups()
        taken = re.search(r"\blet %s = (\w+);" % name, before)
        begin = taken and re.search(r"\b%s = (\d+)%s;\s*(?:\w+ = \w+;\s*|var \w+ : [^;]*;\s*)*$" % (taken.group(1), kind), ahead)
        if begin and re.search(r"\b%s = \(%s \+ 1%s\);" % (taken.group(1), name, kind), step):
            body = before.replace(taken.group(0), "let %s = gn_round;" % name)
            rest = "" if last == "break;" else "{\n%s\n%s\n }" % (before, last[:-len("break;")])
            return "for (var gn_round = %s%s; gn_round < %s%s; gn_round++) {\n%s\n%s\n%s\n }\n%s" % (
                begin.group(1), kind, most, kind, body, inner, step, rest)
    inner = re.sub(r"\bcontinue;", lambda m: step + "\ngn_continue;", inner) # not to be met again by a loop around this one
    return "for (var gn_round = 0u; gn_round < 4294967295u; gn_round++) {\n%s\nif (!%s) { %s }\n%s\n%s\n }" % (
        before, head.group(1), last, inner, step)


def own_break(text):
    """Whether a break in it belongs to the loop around it."""
    at = text.find("for (var gn_round")
    if at < 0:
        return re.search(r"\bbreak;", re.sub(r"for \([^{]*\{[^{}]*\}", "", text)) is not None
    end = closing(text, text.index("{", at))
    return own_break(text[:at]) or own_break(text[end:])


def own_variables(text):
    """for (; i < ...) with a variable that nothing else uses has it declared there."""
    def function(body):
        at = 0
        while True:
            m = re.compile(r"(\w+) = (\d+[iu]);\s*for \(; \(\1 < ").search(body, at)
            if not m:
                return body
            name, value, end = m.group(1), m.group(2), closing(body, body.index("{", m.end()))
            at, declared = m.end(), re.search(r"\bvar %s : [iu]32;\s*" % name, body)
            uses = [len(re.findall(r"\b%s\b" % name, x)) for x in (body, body[m.start():end])]
            if declared and declared.end() <= m.start() and uses[0] == 1 + uses[1]:
                loop = body[m.start():].replace(m.group(0), "for (var %s = %s; (%s < " % (name, value, name), 1)
                body = body[:declared.start()] + body[declared.end():m.start()] + loop
                at -= declared.end() - declared.start()
    return "".join(function(x) for x in re.split(r"^(?=fn |@compute)", text, flags=re.M))


def library_source():
    with open(os.path.join(SHADERS, "reduce.glsl")) as f:
        reduce = f.read()
    for old, new in (("#define GN_CODE (GN_W5 & 255u)", "layout(constant_id = 0) const uint GN_CODE = 0u;"),
                     ("#define GN_RESULT_DTYPE ((GN_W5 >> 16) & 15u)", "layout(constant_id = 1) const uint GN_RESULT_DTYPE = 0u;"),
                     ("void main() {", "void gn_reduce_main() {")):
        if reduce.count(old) != 1:
            raise make_shaders.Problem("reduce.glsl has no '%s'" % old)
        reduce = reduce.replace(old, new)
    with open(os.path.join(SHADERS, "ops.glsl")) as f:
        ops = re.sub(r"^#if (?:defined\(GN_X64\)|[^\n]*!defined\(GN_WGSL\)).*?^#endif$", "", f.read(), flags=re.M | re.S)
    text = [FRONT, '#define GN_WGSL_LIBRARY\n#include "wgsl.glsl"\n#define GN_GENERIC\n', reduce]
    for kind, types in (("VALUE_F", "vec4 a = uintBitsToFloat(ra), b = uintBitsToFloat(rb), c = uintBitsToFloat(rc); precise vec4 y = x; return floatBitsToUint(y);"),
                        ("VALUE_I", "ivec4 a = ivec4(ra), b = ivec4(rb), c = ivec4(rc); return uvec4(x);"),
                        ("VALUE_U", "uvec4 a = ra, b = rb, c = rc; return x;"),
                        ("TRUTH_F", "vec4 a = uintBitsToFloat(ra), b = uintBitsToFloat(rb); return uvec4(x);"),
                        ("TRUTH_I", "ivec4 a = ivec4(ra), b = ivec4(rb); return uvec4(x);"),
                        ("TRUTH_U", "uvec4 a = ra, b = rb; return uvec4(x);"), ("BITS", "return x;")):
        text.append("#undef GN_%s\n#define GN_%s(x) { %s }\n" % (kind, kind, types))
    calls = []
    for cases, body in re.findall(r"^    ((?:case \d+u: )+)(GN_\w+\(.*\))$", ops, re.M):
        codes = [int(c) for c in re.findall(r"\d+", cases)]
        text.append("uvec4 gn_op_%d(uvec4 ra, uvec4 rb, uvec4 rc) %s\n" % (codes[0], body))
        calls.append((codes, "gn_op_%d" % codes[0]))
    text.append("""
uvec4 gn_load_f16(uvec4 v) { return gn_unpack_f16(v); }
uvec4 gn_store_f16(uvec4 v) { return gn_pack_f16(v); }
uvec4 gn_store_bf16(uvec4 v) { return gn_pack_bf16(v); }
void main() {
    uvec4 x = uvec4(GN_PARAM(0)), y = uvec4(GN_PARAM(1)), z = uvec4(GN_PARAM(2)), s = x, c = y;
""")
    for _, name in calls:
        text.append("    x ^= %s(x, y, z);\n" % name)
    text.append("""    x ^= gn_load_f16(x) ^ gn_store_f16(y) ^ gn_store_bf16(z) ^ gn_neutral() ^ gn_neutral_c();
    gn_enter(x, y, s, c);
    gn_join(s, c, x, y);
    gn_join_next(s, c, y, x);
    x.xy ^= gn_leave(s, c, GN_PARAM(3));
    gn_store4(0u, 0u, x ^ s ^ c);
}
""")
    return "".join(text), calls


def functions(text):
    """{name: text} of the functions of a WGSL text, and what else it declares."""
    found, rest, name = {}, [], None
    for line in text.split("\n"):
        if name is None:
            m = re.match(r"(?:@.*\s)?fn (\w+)\(", line)
            if m:
                name = m.group(1)
                found[name] = []
            else:
                rest.append(line)
                continue
        found[name].append(line)
        if line == "}":
            name = None
    return {n: "\n".join(b) + "\n" for n, b in found.items()}, "\n".join(rest)


# Files whose kernels are packed, and which of theirs are left out: those for float64 and int64 arithmetic, more lanes or
# more shared memory than every device of WebGPU has.
FILES = ["matmul", "matvec", "softmax", "random", "take", "scatter", "scan", "sort", "select", "find", "fft", "fft_any", "fft_wide",
         "image"]
LEFT_OUT = ["softmax_wide"]
TILES = ["matmul_32x32s", "matmul_int_64"] # room webgpu_kernels writes the other ones of float32 at run time
# Kernels that are packed together since they have much in common, in this order; a block is unpacked as far as it is needed.
TOGETHER = {"fft_wide": "fft_any", **dict.fromkeys(["softmax", "random", "take", "scatter", "scan", "sort", "select", "find", "image"],
                                                   "matvec")}
PUBLIC = {"gn_neutral_": "neutral", "gn_neutral_c_": "neutral_c", "gn_enter": "enter", "gn_join": "join", "gn_join_next": "join_next",
          "gn_leave": "leave", "gn_load_f16": "load_f16", "gn_store_f16": "store_f16", "gn_store_bf16": "store_bf16"}


def renamed(body):
    """A function whose variables are numbered from 0, so that the same functions of other kernels are the same text."""
    local = re.findall(r"\b(?:let|var|fn \w+\() ?((?:v|param)_\d+)\b", body)
    names = {n: "v%d" % i for i, n in enumerate(dict.fromkeys(local))}
    if set(names.values()) & set(re.findall(r"\w+", body)):
        raise make_shaders.Problem("names that begin as those of variables do")
    return re.sub(r"\w+", lambda m: names.get(m.group(0), m.group(0)), body)


def shorter(text):
    """Without indentation, empty lines and numbers of variables that differ from kernel to kernel."""
    text = "\n".join(line.strip() for line in text.split("\n") if line.strip()) + "\n"
    return "".join(renamed(x) for x in re.split(r"^(?=fn |@compute)", text, flags=re.M))


HIDDEN = re.compile(r"let (\w+) = (bitcast<vec4<u32>>\(.*\));\nlet (\w+) = gn_zero;\nreturn bitcast<vec4<u32>>\(bitcast<vec4<f32>>\("
                    r"\(\1 \| vec4<u32>\(\3, \3, \3, \3\)\)\)\);")
RARE = re.compile(r"gn_(trig|div)_rare_")


def quick(chunks, names):
    """Ops that need one of the functions above have a second form, named f instead of o, that only tells that it would have
    called one: programs for devices that run both sides of every `if`."""
    body = {re.match(r"@(\w+)", c).group(1): c.split("\n", 1)[1] for c in chunks}
    needs = {re.match(r"@(\w+)", c).group(1): c.split("\n", 1)[0].split()[1:] for c in chunks}
    rare, slow = {n for full, n in names.items() if RARE.match(full)}, set()
    never = {n for full, n in names.items() if full.startswith("gn_floor_div_")} # which is slow in any case
    while True:
        more = {n for n in needs if n not in rare | never and (slow | rare) & set(needs[n])} - slow
        if not more:
            break
        slow |= more
    ops = {n for n in slow if n[0] == "o"}
    wanted, other = set(), ops
    while other:
        wanted |= other
        other = {m for n in other for m in needs[n] if m in slow | rare} - wanted
    twins = {n: ("f" + n[1:] if n[0] == "o" else "f" + n) for n in wanted}
    made = ["@rare\nvar<private> gn_rare : u32;\n"]
    for n in body:
        if n not in twins:
            continue
        text = re.sub(r"\w+", lambda m: twins.get(m.group(0), m.group(0)), body[n])
        if n in rare:
            head = text.split("\n", 1)[0]
            made.append("@%s rare\n%s\ngn_rare = 1u;%s\n}\n" % (twins[n], head, "\nreturn *(a);" if "->" in head else ""))
        else:
            made.append("@%s%s\n%s" % (twins[n], "".join(" " + twins.get(m, m) for m in needs[n]), text))
    return made


def library(tmp, keep):
    """The library as chunks '@name needs needs...' and a function each. Constants of reductions, and those that say whether
    fma rounds once, are chunks of their own."""
    source, calls = library_source()
    text = finite(to_wgsl(source, [], make_shaders.PASSES, tmp))
    keep("library", text)
    found, rest = functions(text)
    del found["main"]
    names = {}
    for n in found:
        op = re.match(r"gn_op_(\d+)_", n)
        stem = next((p for p in PUBLIC if n == p or re.match(p + r"_(v|u\d*_|1_|$)", n)), None)
        names[n] = "o" + op.group(1) if op else PUBLIC[stem] if stem else "q%d" % len(names)
    if sorted(n for n in names.values() if n in PUBLIC.values()) != sorted(PUBLIC.values()):
        raise make_shaders.Problem("the library lacks a function")
    consts = [line.replace("override", "const") + "\n" for line in rest.split("\n") if line.startswith("override")]
    fused = [line for line in consts if "GN_FUSED" in line]
    shared = {"fused": fused, "reduction": [line for line in consts if line not in fused]}
    const_names = {name: set(re.findall(r"const (\w+)", "".join(lines))) for name, lines in shared.items()}
    const_names["fused"].add("GN_FUSED") # which the text of a program begins with, as those of reductions do with these
    const_names["reduction"] |= {"GN_CODE", "GN_RESULT_DTYPE"}
    chunks = ["@%s\n%s" % (name, shorter("".join(lines))) for name, lines in shared.items()]
    for n, body in found.items():
        words = set(re.findall(r"\w+", body.split("\n", 1)[1]))
        needs = sorted(names[w] for w in words if w in names and w != n) + [n for n in const_names if words & const_names[n]]
        body = re.sub(r"\w+", lambda m: names.get(m.group(0), m.group(0)), body)
        if "gn_wgsl_words" in body:
            raise make_shaders.Problem("%s of the library reads parameters" % n)
        body = shorter(body)
        if names[n][0] == "o":  # what an op gives is hidden by the program that it is a step of
            body = HIDDEN.sub(r"return \2;", body)
        chunks.append("@%s%s\n%s" % (names[n], "".join(" " + x for x in needs), body))
    chunks += quick(chunks, {n: names[n] for n in found})
    for codes, _ in calls:  # conversions have one form under three numbers
        for c in codes[1:]:
            word = "ptr<function, vec4<u32>>"
            chunks.append("@o%d o%d\nfn o%d(a : %s, b : %s, c : %s) -> vec4<u32> { return o%d(a, b, c); }\n" % (
                c, codes[0], c, word, word, word, codes[0]))
    return "".join(chunks)


class Kernel:
    def __init__(self, name, text):
        # A shift by a constant of the pipeline is an error from 32 on, where it is not run, too.
        fixed = set(re.findall(r"^(?:@id\(\d+\) )?override (\w+) : u32", text, re.M))
        text = re.sub(r" (<<|>>) (\w+)\)",
                      lambda m: " %s (%s & 31u))" % m.groups() if m.group(2) in fixed else m.group(0), text)
        self.name, self.text = name, shorter(text)
        self.specs = sum(1 << int(i) for i in re.findall(r"@id\((\d+)\)", text))
        self.buffers = self.written = 0
        for k, access in re.findall(r"@binding\((\d+)u\) var<storage, (\w+)>", text):
            self.buffers |= 1 << (int(k) - 1)
            self.written |= (access == "read_write") << (int(k) - 1)
        size = re.search(r"@workgroup_size\((\d+)u, (\d+)u, (\d+)u\)", text)
        if not size or int(size.group(1)) * int(size.group(2)) * int(size.group(3)) > 256:
            raise make_shaders.Problem("more than 256 lanes")
        if bin(self.buffers).count("1") > 8:
            raise make_shaders.Problem("more than 8 buffers")


def kernels(tmp, keep):
    done, failed = [], []
    for stem in FILES:
        file = stem + ".comp"
        with open(os.path.join(SHADERS, file)) as f:
            text = f.read()
        variants, with_bindings = make_shaders.read_variants(file, text)
        if stem == "fft_any":  # the form for devices that are CPUs comes last, and there in the place of one for more memory
            variants = variants + [("fft_any_3k", "", ["-DGN_FFT_SHARED=1024", "-DGN_FFT_ALONE"], False)]
        for name, env, defines, bfloat16 in variants:
            bindings = name in with_bindings or name == "image"  # which Vulkan has no other way for
            if re.search(r"DOUBLE|X64", " ".join(defines)) or bfloat16 or not bindings:
                continue
            if stem == "matmul" and name not in TILES:
                continue
            body = re.sub(r"^#version.*\n", "", text, flags=re.M)
            extensions = "".join(re.findall(r"^#extension.*\n", body, re.M))
            # What is only read is bound as vectors: one load of 16 bytes instead of four.
            body = re.sub(r"^#define GN_READONLY (\w+)", r"#define GN_WIDE \1\n\g<0>", body, flags=re.M)
            body = FRONT + extensions + '#include "wgsl.glsl"\n' + re.sub(r"^#extension.*\n", "", body, flags=re.M)
            try:
                passes = [] if stem.startswith("matmul") or name == "softmax_long" else make_shaders.PASSES
                wgsl = to_wgsl(body, defines, passes, tmp)
                if stem == "matmul" and "= fma(" in wgsl: # not the one of integers
                    wgsl = flat(wgsl)
                wgsl = finite(wgsl)
                keep(name, wgsl)
                done.append((stem, Kernel(name, wgsl)))
            except make_shaders.Problem as e:
                failed.append(name)
                lines = [x for x in str(e).split("\n") if re.search(r"rror|unhandled|not supported|nvalid|more than", x)]
                print("%s: %s" % (name, (lines or [str(e)])[-1][-200:]), file=sys.stderr)
    if failed != LEFT_OUT:
        sys.exit("make_wgsl.py: no form for WebGPU: %s; known: %s" % (", ".join(failed), ", ".join(LEFT_OUT)))
    return done, failed


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", metavar="DIR")
    p.add_argument("--check", action="store_true")
    a = p.parse_args()
    header = os.path.join(ROOT, "shaders_wgsl.h")
    if a.check:
        with open(header) as f:
            if "Sources: " + sources() not in f.read():
                sys.exit("shaders_wgsl.h was made of other sources; run tools/web/make_wgsl.py")
        return

    def keep(name, text):
        if a.out:
            os.makedirs(a.out, exist_ok=True)
            with open(os.path.join(a.out, name + ".wgsl"), "w") as f:
                f.write(text)
    with tempfile.TemporaryDirectory() as tmp:
        blocks = {"library": library(tmp, keep)}
        done, failed = kernels(tmp, keep)
    rows = []
    for stem, k in done:
        block = TOGETHER.get(stem, stem)
        at = len(blocks.setdefault(block, ""))
        blocks[block] += k.text
        rows.append("%s, %s, %d, %d, 0x%xu, 0x%xu, 0x%xu" % (k.name, block, at, len(k.text), k.specs, k.buffers, k.written))
    text = [""]
    sizes = []
    for name, body in blocks.items():
        lines = pack_shaders.squeeze(bytearray(body.encode()))
        sizes.append("%s, %d, %d" % (name, sum(map(len, lines)), len(body)))
        text.append("\nstatic const char gni_wgsl_text_%s[][%d] = {\n%s};\n" % (name, len(lines[0]) + 1,
                                                                            "".join('    "%s",\n' % x for x in lines)))
    text[0] = HEAD % {"sources": sources(), "blocks": make_shaders.listed(sizes), "rows": make_shaders.listed(rows)}
    with open(header, "w", newline="\n") as f:
        f.write("".join(text) + TAIL)
    print("shaders_wgsl.h: %d kernels, %d left to the CPU, %d KiB of WGSL in %d KiB" % (
        len(done), len(failed), sum(map(len, blocks.values())) // 1024, sum(map(len, text)) // 1024))


HEAD = """\
// shaders_wgsl.h - gpunum's kernels as WGSL, for the WebGPU layer. Public domain or MIT, see LICENSE.
//
// Generated from tools/shaders by tools/web/make_wgsl.py: do not edit.
// Sources: %(sources)s
#ifdef GNI_WGSL_WANTED
#ifndef GNI_SHADERS_WGSL_H
#define GNI_SHADERS_WGSL_H

// Blocks of texts. X(name, characters, bytes that they decode to)
// clang-format off
#define GNI_WGSL_BLOCKS(X)%(blocks)s

// X(name, block, first byte in it, bytes in it, bits of: its overrides, its buffers, those that it writes)
#define GNI_WGSL_KERNELS(X)%(rows)s
"""

TAIL = """\
// clang-format on

#endif // GNI_SHADERS_WGSL_H
#endif // GNI_WGSL_WANTED
"""


if __name__ == "__main__":
    try:
        main()
    except (make_shaders.Problem, OSError) as e:
        sys.exit("make_wgsl.py: %s" % e)
