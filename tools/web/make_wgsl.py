#!/usr/bin/env python3
"""Makes WGSL of tools/shaders/*.glsl and *.comp and packs it into shaders_wgsl.h.

  make_wgsl.py            everything, writes shaders_wgsl.h
  make_wgsl.py --out DIR  and leaves the texts there

Each way is glslang, spirv-opt, a pass of our own, Tint. That pass gives operations that GLSL calls precise a form that
stays: WGSL's compilers may take (a + b) - a for b, so their results go through an exclusive or with a zero that only
the device knows.

What comes out is a block for the library, the functions of which programs are written at run time, and one for
each kernel. Both are packed as shaders.h is, see room unpack.
"""
import argparse
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


# --- operations that stay as they are -----------------------------------------------------------

OP_NAME, OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR, OP_DECORATE, OP_LOAD = 5, 21, 22, 23, 71, 61
OP_FUNCTION, OP_CONSTRUCT, OP_BITCAST, OP_XOR = 54, 80, 124, 198
ARITHMETIC = {129, 131, 133, 136, 142}  # FAdd, FSub, FMul, FDiv, VectorTimesScalar


def opaque(words):
    """Every result with NoContraction goes through an exclusive or with the variable gn_zero."""
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
    if zero is None or not precise:
        return words
    bound, out, made, body = words[3], list(words[:5]), [], False
    wanted = {1: ints}
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
        if op in ARITHMETIC and x[2] in precise and x[1] in types:
            n, result = types[x[1]], x[2]
            a, b, c, z, v = range(bound, bound + 5)
            bound += 5
            out += x[:2] + [a] + x[3:]
            out += [4 << 16 | OP_BITCAST, wanted[n], b, a, 4 << 16 | OP_LOAD, ints, z, zero]
            if n > 1:
                out += [(3 + n) << 16 | OP_CONSTRUCT, wanted[n], v] + [z] * n
            out += [5 << 16 | OP_XOR, wanted[n], c, b, v if n > 1 else z]
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
        ops = f.read()
    text = [FRONT, '#include "wgsl.glsl"\n#define GN_GENERIC\n', reduce]
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


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", metavar="DIR")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        source, calls = library_source()
        if a.out:
            os.makedirs(a.out, exist_ok=True)
            open(os.path.join(a.out, "library.comp"), "w").write(source)
        text = to_wgsl(source, [], make_shaders.PASSES, tmp)
        if a.out:
            open(os.path.join(a.out, "library.wgsl"), "w").write(text)
        f, rest = functions(text)
        print(len(text), len(f)); print(rest)


if __name__ == "__main__":
    try:
        main()
    except (make_shaders.Problem, OSError) as e:
        sys.exit("make_wgsl.py: %s" % e)
