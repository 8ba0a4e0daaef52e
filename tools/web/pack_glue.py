#!/usr/bin/env python3
"""Makes Emscripten's JavaScript smaller, and lets bundlers read it: pack_glue.py FILE...

Each function of the library stands there three times: one list has them all. What node alone imports is said so that
bundlers leave it alone."""
import re
import sys


def packed(text):
    found = [m for m in re.finditer(r'_gn_(\w+)=Module\["_gn_\1"\]=wasmExports\["([^"]+)"\];', text)]
    found = [m for m in found if len(re.findall(r'\b_gn_%s\b' % m[1], text)) == 3]  # declared, and these two
    if not found:
        return text
    names = ' '.join('%s %s' % m.groups() for m in found)
    loop = '"%s".replace(/(\\S+) (\\S+)/g,(_,f,e)=>{Module["_gn_"+f]=wasmExports[e]});' % names
    text = text.replace(found[0][0], loop + found[0][0], 1)
    for m in found:
        text = text.replace(m[0], '', 1)
        text = re.sub(r'(?<=[ ,])_gn_%s,|,_gn_%s(?=;)' % (m[1], m[1]), '', text, count=1)
    return text


for path in sys.argv[1:]:
    with open(path) as f:
        text = packed(f.read())
    text = re.sub(r'import\("(node:\w+)"\)', r'import(/* webpackIgnore: true */ /* @vite-ignore */ ["\1"].pop())', text)
    with open(path, 'w') as f:
        f.write(text)
