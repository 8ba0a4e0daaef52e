#!/usr/bin/env python3
"""Which room of gpunum.h stands on which: the includes that let each room open alone in an editor.

  tools/rooms.py            prints the arrows between folders, and the calls that run against them
  tools/rooms.py --write    writes into every room the includes that it needs
  tools/rooms.py --check    fails unless they are what the rooms use, no room includes a later one, each uses only what the
                            table in tools/gpunum/README.md lets its folder use, and no line has more than 126 columns
  tools/rooms.py --svg F    draws the folders and their arrows

A room names the earlier rooms whose names it uses, but for those that come with another one. What it uses of later
rooms is declared in room `internal`.
"""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_header  # noqa: E402

ROOMS = make_header.ROOMS
# gcc gives the places in a line 128 numbers, and all lines behind a longer one 256. Those it has are few for a header that is
# read again for each SIMD pass, and once they are used up its tokens take a sixth more memory at -O0.
WIDEST = 126
OPEN = "#ifndef GNI_ROOMS // alone in an editor: what this room stands on\n#pragma once\n"
# What rooms that are compiled several times need beside their includes.
EXTRA = {
    "config": "#define GPUNUM_PART 1\n",
    "types": "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n",
    "simd": "#define GNI_PASS_BASE 1\n#define GNI_VW 4\n#define GNI_FN(name) name##_base\n",
    "fft_micro": "#define GNI_FT_T float\n#define GNI_FT_WIDE 0\n#define GNI_FT_I int32_t\n#define GNI_FT_W GNI_VW\n"
                 "#define GNI_FT(name) GNI_FN(name##_f32)\n#define GNI_FT_MAX_RADIX 8\n"
                 "#define GNI_FT_FMA(a, b, c) ((a) * (b) + (c))\n#define GNI_FT_FNMA(a, b, c) ((c) - (a) * (b))\n",
}
# These compile other rooms, or only undo names: nobody stands on them.
APART = {"passes", "fft_numbers", "fft_end", "simd_end", "config_end"}
BARE = {"slots"} # included by tools/shaders, too, and stands on nobody


def clean(text):
    text = re.sub(r"//[^\n]*", "", make_header.ALONE.sub("", text))
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', text)


def definitions(text, public):
    """Names that a room defines: functions, macros, types, enumerators, tables; of the public half prototypes too."""
    names = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))
    names |= set(re.findall(r"^\} (\w+)(?:\[\w*\])?;", text, re.M))
    names |= set(re.findall(r"^typedef [^;{]*?\(?\*?\b(\w+)\)?(?:\([^;]*\))?;", text, re.M))
    names |= set(re.findall(r"^(?:GNI_MAYBE_UNUSED )?(?:static|GNI_TABLE)[^;(){}]*?\b(\w+)(?:\[[^=;]*\])*\s*[=;]", text, re.M))
    names |= set(re.findall(r"^struct (\w+) \{", text, re.M))
    names |= set(re.findall(r"^typedef (?:enum|struct|union)[^{;]*\{[^{}]*\} (\w+);", text, re.M))
    for body in re.findall(r"\benum \w* ?\{(.*?)\}", text, re.S):
        names |= set(re.findall(r"\b(GNI?_\w+)\b(?!\()", body))
    end = r"[;{]" if public else r"\{"
    functions = re.findall(r"^(?:[A-Za-z_][\w \t\n]*?[\s*]+)\*?(\w+)\((?:[^;{}]|\{\w*\})*\)\s*%s" % end, text, re.M)
    names |= {f for f in functions if public or not f.startswith("gn_")}
    return {n for n in names if re.match(r"gni?_|gpunum_", n, re.I) and not n.endswith("_")}


def prototypes(text):
    return set(re.findall(r"\b(gni_\w+)\([^;{}]*\)[^;{}]*;", text)) | set(re.findall(r"typedef struct (\w+)", text))


class House:
    def __init__(self):
        listed = [(path.split("/")[0], name) for path, name, _ in make_header.rooms() if name != "manual"]
        self.folder = {name: folder for folder, name in listed}
        self.order = [name for _, name in listed]
        self.place = {name: i for i, name in enumerate(self.order)}
        self.text = {name: clean(make_header.read("%s/%s.h" % (folder, name))) for folder, name in listed}
        home = collections.defaultdict(list)
        for name in self.order:
            if name not in APART:
                for word in definitions(self.text[name], self.folder[name] == "api"):
                    home[word].append(name)
        declared = prototypes(self.text["internal"])
        self.uses = {name: collections.defaultdict(set) for name in self.order}  # room -> earlier room -> names
        self.later = {name: collections.defaultdict(set) for name in self.order}
        for name in self.order:
            for word in set(re.findall(r"\b\w+\b", self.text[name])):
                at = home.get(word, [])
                if not at or name in at:
                    continue
                before = [r for r in at if self.place[r] < self.place[name]]
                if before:
                    self.uses[name][before[0]].add(word)
                elif word in declared and name != "internal" and self.place["internal"] < self.place[name]:
                    self.uses[name]["internal"].add(word)
                    self.later[name][at[0]].add(word)
        self.includes = {}
        reach = {}
        for name in self.order:
            base = "types" if name == "config" else "config"
            for common in ("internal", "structs"): # every later room handles contexts and arrays
                if self.place[common] < self.place[name]:
                    base = common
                    break
            if self.folder[name] != "api" and name not in BARE:
                self.uses[name].setdefault(base, set())
            if name in ("fft_micro", "linalg_micro"):
                self.uses[name].setdefault("simd", set())
            if "GNI_MODULE_" in self.text[name] and self.place[name] > self.place["vulkan_pipelines"]:
                self.uses[name].setdefault("vulkan_pipelines", set()) # which includes shaders.h
            direct = sorted(self.uses[name], key=self.place.get, reverse=True)
            kept, seen = [], set()
            for d in direct:
                if d not in seen:
                    kept.append(d)
                    seen |= reach[d] | {d}
            self.includes[name] = sorted(kept, key=self.place.get)
            reach[name] = seen

    def block(self, name):
        if name in APART:
            return ""
        lines = "".join('#include "../%s/%s.h"\n' % (self.folder[d], d) for d in self.includes[name])
        return OPEN + lines + EXTRA.get(name, "") + "#endif\n"


def allowed(house):
    """The table in README.md, who may use whom: folders and single rooms by folder."""
    with open(os.path.join(ROOMS, "README.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", f.read(), re.M)
    table, above = {}, []
    for folder, words in rows:
        table[folder] = set(re.findall(r"`([\w/]+)`", words)) | {folder, "api"} | (set(above) if "all above" in words else set())
        above.append(folder)
    missing = set(house.folder.values()) - set(table)
    if missing:
        sys.exit("README.md does not say what these folders may use: " + " ".join(sorted(missing)))
    return table


def with_block(text, block):
    """`text` with `block` after the comment that opens the room."""
    text = make_header.ALONE.sub("", text)
    head = re.match(r"(?://[^\n]*\n)+", text).group(0)
    rest = text[len(head):].lstrip("\n")
    return head + "\n" + (block + "\n" if block else "") + rest


def draw(house, path):
    folders = list(dict.fromkeys(house.folder[n] for n in house.order))
    arrows = {(house.folder[a], house.folder[b]) for a in house.order for b in house.uses[a]}
    arrows = sorted((a, b) for a, b in arrows if a != b)
    row = 46
    y = {f: 30 + row * i for i, f in enumerate(folders)}
    height, width = 30 + row * len(folders), 620
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">' % (width, height),
           '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
           '<path d="M0 0L8 4L0 8z" fill="#567"/></marker></defs>',
           '<rect width="%d" height="%d" fill="#fff"/>' % (width, height)]
    for a, b in arrows:
        far = abs(folders.index(a) - folders.index(b))
        color = "#567" if folders.index(b) < folders.index(a) else "#c22"
        bend = 200 + 34 * far
        out.append('<path d="M200 %d C%d %d %d %d 204 %d" fill="none" stroke="%s" stroke-opacity=".55" marker-end="url(#a)"/>'
                   % (y[a], bend, y[a], bend, y[b], y[b] + 6, color))
    for f in folders:
        names = sum(house.folder[n] == f for n in house.order)
        lines = sum(house.text[n].count("\n") for n in house.order if house.folder[n] == f)
        out.append('<rect x="20" y="%d" width="180" height="32" rx="5" fill="#eef3f8" stroke="#567"/>' % (y[f] - 16))
        out.append('<text x="32" y="%d"><tspan font-weight="bold">%s</tspan> %d rooms, %d lines</text>' % (y[f] + 5, f, names, lines))
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n</svg>\n")


def main():
    house = House()
    stale = []
    for name in house.order:
        path = os.path.join(ROOMS, house.folder[name], name + ".h")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        wide = [line for line in text.split("\n") if len(line) > WIDEST]
        if sys.argv[1:] == ["--check"] and wide:
            sys.exit("%s/%s has a line of more than %d columns: %s" % (house.folder[name], name, WIDEST, wide[0]))
        fresh = with_block(text, house.block(name))
        if fresh != text:
            stale.append("%s/%s.h" % (house.folder[name], name))
            if sys.argv[1:] == ["--write"]:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(fresh)
    if sys.argv[1:] == ["--check"] and stale:
        sys.exit("these rooms do not include what they use; run tools/rooms.py --write: " + " ".join(stale))
    if sys.argv[1:] == ["--check"]:
        table = allowed(house)
        for a in house.order:
            for b in house.uses[a]:
                if not {house.folder[b], house.folder[b] + "/" + b} & table[house.folder[a]]:
                    sys.exit("%s/%s uses %s/%s (%s), which the table in README.md does not allow" % (
                        house.folder[a], a, house.folder[b], b, " ".join(sorted(house.uses[a][b]))))
    if sys.argv[1:2] == ["--svg"]:
        draw(house, sys.argv[2])
    if not sys.argv[1:]:
        arrows = collections.Counter()
        for a in house.order:
            for b, words in house.uses[a].items():
                if house.folder[a] != house.folder[b]:
                    arrows[house.folder[a], house.folder[b]] += len(words)
        for (a, b), n in sorted(arrows.items()):
            print("%-8s on %-8s %4d names" % (a, b, n))
        for a in house.order:
            for b, words in house.later[a].items():
                if house.folder[a] != house.folder[b]:
                    print("declared ahead: %s/%s -> %s/%s: %s" % (house.folder[a], a, house.folder[b], b, " ".join(sorted(words))))
    else:
        print("%d rooms, %d written anew" % (len(house.order), len(stale)))


if __name__ == "__main__":
    main()
