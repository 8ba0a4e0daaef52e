"""Packs SPIR-V modules into text and back, for make_shaders.py; tools/gpunum/gpu/unpack.h says what the form is.

Any words come back as they were, whatever they mean: the table of operands below only makes them short.
"""
import collections
import lzma

LC = 2  # bits of a byte that choose the model of the next: GNI_UNPACK_LC
LINE = 4000  # characters; C99 compilers need not take more than 4095 in a string
KINDS = "litrd"  # as unpack.h numbers them

# What the operands of an instruction are, by its number: t a type, i another id, d a type that it defines, r another
# id that it defines, l a number. The last one repeats; in OpSwitch the last two do.
DEFAULT = "tri"
OPERANDS = {
    10: "l", 11: "rl", 12: "trili", 14: "l", 15: "lil", 16: "il", 17: "l",  # extensions, entry point, modes
    19: "d", 20: "d", 21: "dl", 22: "dl", 23: "dtl", 28: "dti", 29: "dt", 30: "dt", 32: "dlt", 33: "dt", 39: "tl",
    4456: "dti",  # types
    43: "trl", 50: "trl", 52: "trli", 54: "trlt", 59: "trli",  # constants, functions, variables
    61: "tril", 62: "iil", 71: "il", 72: "tl", 79: "triil", 81: "tril", 82: "triil",  # memory, decorations, vectors
    224: "i", 225: "i", 246: "iil", 247: "il", 248: "r", 249: "i", 250: "i", 251: "iili", 254: "i",  # control flow
    4457: "triiil", 4458: "iiiil", 4459: "triiil",  # cooperative matrices
}
OP_SWITCH = 251


def operands(head):
    """The kinds of all operands of an instruction with this first word."""
    op, count = head & 0xffff, (head >> 16) - 1
    kinds = OPERANDS.get(op, DEFAULT)
    repeat = kinds[-2:] if op == OP_SWITCH else kinds[-1]
    return (kinds + repeat * count)[:count]


# --- numbers ------------------------------------------------------------------------------------

def put(out, v):
    while v >= 128:
        out.append(v & 127 | 128)
        v >>= 7
    out.append(v)


def signed(d):
    """A difference modulo 2^32 as a number that is small where the difference is: 0, -1, 1, -2, 2 become 0 to 4."""
    d &= 0xffffffff
    return (d ^ 0xffffffff) * 2 + 1 if d >> 31 else d * 2


# --- tokens -------------------------------------------------------------------------------------

def instructions(words):
    i = 5
    while i < len(words):
        count = words[i] >> 16
        yield words[i:i + count]
        i += count


def tokens(modules):
    """A block of modules, [words]: its bytes and where each module begins."""
    used = collections.Counter(x[0] for words in modules for x in instructions(words))
    heads = sorted(used, key=lambda h: (-used[h], h))
    token = {h: i for i, h in enumerate(heads)}
    kinds = {h: operands(h) for h in heads}
    out, starts = bytearray(), []
    put(out, len(heads))
    for h in heads:
        put(out, h & 0xffff)
        put(out, h >> 16)
        out += bytes(KINDS.index(c) for c in kinds[h])
    for words in modules:
        starts.append(len(out))
        for w in words[:5]:
            put(out, w)
        last, ids, types = 0, [], []
        for x in instructions(words):
            put(out, token[x[0]])
            for v, kind in zip(x[1:], kinds[x[0]]):
                if kind == "l":
                    put(out, v)
                    continue
                recent = ids if kind in "ir" else types
                if kind in "rd":
                    put(out, signed(v - last - 1))
                    last = v
                elif v in recent:
                    at = recent.index(v)
                    put(out, at + 1)
                    del recent[at]
                else:
                    put(out, 0)
                    put(out, signed(v - last))
                    continue
                recent.insert(0, v)
    return bytes(out), starts


def words_of(block, start, count):
    """The `count` words of the module that begins at `start`."""
    at = 0

    def get():
        nonlocal at
        v = shift = 0
        while block[at] >= 128:
            v |= (block[at] & 127) << shift
            shift += 7
            at += 1
        v |= block[at] << shift
        at += 1
        return v

    def difference():
        v = get()
        return v >> 1 ^ -(v & 1)

    table = []
    for _ in range(get()):
        op = get()
        length = get()
        table.append((length << 16 | op, [KINDS[k] for k in block[at:at + length - 1]]))
        at += length - 1
    at = start
    words = [get() for _ in range(5)]
    last, ids, types = 0, [], []
    while len(words) < count:
        head, kinds = table[get()]
        words.append(head)
        for kind in kinds:
            if kind == "l":
                words.append(get())
                continue
            recent = ids if kind in "ir" else types
            if kind in "rd":
                v = last = last + 1 + difference() & 0xffffffff
            else:
                rank = get()
                if rank == 0:
                    words.append(last + difference() & 0xffffffff)
                    continue
                v = recent.pop(rank - 1)
            recent.insert(0, v)
            words.append(v)
    return words


# --- LZMA and text ------------------------------------------------------------------------------

def filters(size):
    return [{"id": lzma.FILTER_LZMA1, "dict_size": max(4096, size), "lc": LC, "lp": 0, "pb": 0,
             "mode": lzma.MODE_NORMAL, "nice_len": 273, "mf": lzma.MF_BT4, "depth": 2000}]


def squeeze(data):
    """Tokens as lines of text: bytes of LZMA, four of them as five characters, the lowest first."""
    data = lzma.compress(data, format=lzma.FORMAT_RAW, filters=filters(len(data)))
    data += b"\0" * (-len(data) % 4)
    text = bytearray()
    for i in range(0, len(data), 4):
        v = int.from_bytes(data[i:i + 4], "little")
        for _ in range(5):
            text.append(40 + v % 85)
            v //= 85
    # Neither escapes nor trigraphs.
    text = text.decode().replace("\\", "#").replace("?", "$")
    lines = -(-len(text) // LINE)
    length = -(-len(text) // (5 * lines)) * 5
    return [text[i:i + length] for i in range(0, len(text), length)]


def expand(lines, size):
    """The `size` bytes of tokens that squeeze made lines of."""
    text = "".join(lines).replace("#", "\\").replace("$", "?").encode()
    data = bytearray()
    for i in range(0, len(text), 5):
        v = 0
        for c in reversed(text[i:i + 5]):
            v = v * 85 + c - 40
        data += (v & 0xffffffff).to_bytes(4, "little")
    return lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=filters(size)).decompress(bytes(data), size)
