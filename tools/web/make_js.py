#!/usr/bin/env python3
"""Writes what gpunum.js knows of the library, out of the header's prototypes: make_js.py HEADER.i FOLDER, where HEADER.i is
gpunum.h after the preprocessor. Into FOLDER go calls.js (a table), gpunum.d.ts (declarations), exports.txt (for emcc) and
layout.h, with which the compiler looks whether structs are as they are in the table.

A function becomes a method of what it takes first: a context, an array or an optimizer. What gpunum.js has in another way,
and what it leaves out and why, is in by_hand.txt; a function that is in neither is an error."""
import os, re, sys, textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
# Letters of the table, and what stands for a parameter in the declarations.
KIND = {'gn_context *': 'g', 'const gn_context *': 'g', 'gn_array *': 'a', 'const gn_array *': 'a', 'gn_optimizer *': 'p',
        'const gn_optimizer *': 'p', 'gn_shape': 's', 'gn_dtype': 't', 'int': 'i', 'int64_t': 'l', 'uint64_t': 'u', 'double': 'd',
        'gn_axes': 'x', '_Bool': 'b', 'const char *': 'z', 'gn_array **': 'o', 'gn_array *const *': 'A', 'const int *': 'I',
        'const int64_t *': 'N', 'gn_plateau *': 'P'}
# Letters 0 to 6; words stand for their numbers.
ENUMS = ['gn_fft_norm', 'gn_convolution', 'gn_norm_order', 'gn_reduction', 'gn_pad_mode', 'gn_interpolation', 'gn_outside']
KIND.update((e, str(i)) for i, e in enumerate(ENUMS))
RESULT = {'gn_array *': 'a', 'gn_optimizer *': 'p', 'double': 'd', 'int64_t': 'l', 'int': 'i', '_Bool': 'b', 'void': 'v',
          'gn_status': 'v', 'const char *': 'z', 'uint64_t': 'U'}
TYPE = {'a': 'Operand', 's': 'Shape | number', 't': 'Dtype', 'i': 'number', 'l': 'number | bigint', 'u': 'number | bigint', 'd': 'number',
        'x': 'Axes', 'y': 'Axes', 'j': 'number', 'b': 'boolean', 'z': 'string', 'k': 'Operand', 'A': 'NDArray[]', 'I': 'number[]',
        'N': 'number[]', 'v': 'void', 'p': 'Optimizer', 'P': 'Plateau', 'U': 'bigint', 'w': 'boolean'}
# What stands where a number is left out, of parameters by their name, or by the function and it; of all others it may not be.
NONE = '-(2n ** 63n)'
DEFAULTS = {'gn_linspace count': '50', 'gn_linspace_open count': '50', 'gn_logspace count': '50', 'gn_logspace base': '10',
            'k': '0', 'gn_topk k': None, 'gn_randint high': None, 'gn_randint t': "'i64'", 'gn_permutation t': "'i64'", 'seed': '0', 'low': '0', 'high': '1', 'deviation': '1', 'scale': '1', 'gn_normal mean': '0', 'gn_truncated_normal mean': '0',
            'gn_truncated_normal low': '-Infinity', 'gn_truncated_normal high': 'Infinity', 'gn_bernoulli p': '.5', 'd': '1',
            'gn_elu alpha': '1', 'gn_leaky_relu slope': '.01', 'gn_clamp low': '-Infinity', 'gn_clamp high': 'Infinity', 'nan': '0',
            'posinf': 'NaN', 'neginf': 'NaN', 'gn_slice start': NONE, 'gn_slice stop': NONE, 'gn_slice step': NONE, 'gn_pad value': '0', 'gn_diff n': '1', 'ddof': '0',
            'gn_cov ddof': '1', 'rtol': '-1', 'gn_isclose rtol': '1e-5', 'gn_allclose rtol': '1e-5', 'atol': '1e-8', 'length': '0',
            'gn_histogram bins': '10', 'gn_histogram high': '0', 'gn_histogram_with bins': '10', 'gn_histogram_with high': '0',
            'x_bins': '10', 'y_bins': '10', 'x_low': '0', 'x_high': '0', 'y_low': '0', 'y_high': '0', 'order': '2', 'gn_dropout p': '.5', 'training': 'true', 'padding': NONE,
            'gn_smooth_l1_loss beta': '1', 'delta': '1', 'eps': '1e-5', 'gn_cosine_similarity eps': '1e-8', 'margin': '0', 'momentum': '.1',
            'lr_factor': '1', 'weight_decay': '0', 'interval': '0', 'gn_step_scaled max_norm': '0', 'pad': '0', 'gn_random_flip p': '.5',
            'gn_concat axis': '0', 'gn_stack axis': '0', 'gn_shuffle axis': '0', 'brightness': '0', 'contrast': '0', 'saturation': '0', 'gn_mixup alpha': '1', 'type': '2',
            'dx': '1', 'gn_solve_triangular transposed': 'false', 'gn_solve_triangular unit': 'false', 'gn_rot90 k': '1', 'gn_rot90 axis1': '0', 'gn_rot90 axis2': '1', 'gn_lr_step gamma': '.1', 'gn_lr_multi_step gamma': '.1', 'least': '0', 'gn_lr_cosine_restarts factor': '1'}
LENGTHS = re.compile('gn_i?([hr]?fft|dct|dst)$') # whose n is a length, 0 that of the axis
# Arrays that may be left out, by the function; of integers, for which numbers and lists of them become int32: letter k.
LEFT_OUT = {'gn_histogram_with': 'weights', 'gn_histogram2d': 'weights', 'gn_clip': 'low high', 'gn_bincount': 'weights', 'gn_choice': 'weights', 'gn_linear': 'b', 'gn_attention': 'mask', 'gn_rope': 'positions',
            'gn_lstm': 'h0 c0', 'gn_gru': 'h0', 'gn_conv1d': 'b', 'gn_conv2d': 'b', 'gn_conv3d': 'b', 'gn_conv_transpose1d': 'b', 'gn_conv_transpose2d': 'b',
            'gn_conv_transpose3d': 'b', 'gn_gradient': 'x', 'gn_trapezoid': 'x',
            'gn_batch_norm': 'mean var w b', 'gn_layer_norm': 'w b', 'gn_rms_norm': 'w', 'gn_group_norm': 'w b', 'gn_instance_norm': 'w b',
            'gn_bce_with_logits': 'pos_weight'}
INTEGERS = {'indices', 'labels', 'counts', 'positions'}
# What the first of several results is. Of these the others are given where they are asked for, letter w; else always.
FIRST = {'gn_topk': 'values', 'gn_unique': 'values', 'gn_unique_axis': 'values', 'gn_histogram': 'counts', 'gn_histogram_with': 'counts', 'gn_histogram2d': 'counts', 'gn_qr': 'q', 'gn_eigh': 'values', 'gn_eig': 'values', 'gn_svd': 's', 'gn_slogdet': 'sign',
         'gn_lstsq': 'x', 'gn_lstm': 'y', 'gn_gru': 'y', 'gn_mixup': 'x', 'gn_max_pool2d': 'y', 'gn_adaptive_max_pool2d': 'y'}
WANTED = {'gn_max_pool2d', 'gn_adaptive_max_pool2d'}
# What the header's words become: (pattern, text or function of the match).
SAID = [(r'\bgn_(\w+)', lambda m: camel(re.sub('_(s|list)$', '', m.group(1)))), (r'\bGN_ALL\b', 'all axes'), (r'\bGN_KEEP\b', 'keep'),
        (r'\bGN_NONE\b', 'left out'), (r'\bNULL with GN_', 'GN_'), (r'\bNULL\b', 'null'), (r'\*(\w+)', r'\1'), (r'\*/', '* /'),
        (r'\bGN_(?:REDUCE|FFT|PAD|CONV)_(\w+)', lambda m: "'%s'" % camel(m.group(1).lower())),
        (r'\bGN_([FIUC]\d+|BF16|BOOL)\b', lambda m: "'%s'" % m.group(1).lower()),
        (r'\b[a-z]+(?:_[a-z0-9]+)+\b', lambda m: camel(m.group()))]
LAST_AXIS = {'gn_sort', 'gn_argsort', 'gn_topk', 'gn_partition', 'gn_argpartition'}


def camel(name):
    return re.sub(r'_([a-z0-9])', lambda m: m.group(1).upper(), name)


def by_hand():
    """The functions in by_hand.txt: {name: (members that have them, or why there is none)}"""
    found = {}
    for line in open(os.path.join(HERE, 'by_hand.txt')):
        if line.startswith('gn_'):
            names, members, why = re.fullmatch(r'([\w ]+?) (?:= ([\w. ]+)|: (.*))\n', line).groups()
            found.update((n, (members or '').split() or why) for n in names.split())
    return found


def comments():
    """What the header says about each function: {name: text}, behind its prototype or above it and its neighbours; and about
    the fields of options, {type: text}."""
    found = {}
    folder = os.path.join(HERE, '../gpunum/api')
    for path in sorted(os.listdir(folder)):
        above, fresh, name = [], False, None
        for line in open(os.path.join(folder, path)):
            said = re.match(r'// ?(.*)', line)
            if said:
                above = above + [said.group(1)] if fresh else [said.group(1)]
            elif not line.strip() or line.startswith(('typedef', '#', '}')):
                above = []
            fresh = bool(said)
            start = re.match(r'GPUNUM_API[^(]*?(gn_\w+)\(', line)
            name = start.group(1) if start else name
            if name and ';' in line:
                behind = re.search(r'; *// ?(.*)', line)
                found[name] = behind.group(1) if behind else ' '.join(above)
                name = None
        text = open(os.path.join(folder, path)).read()
        for body, kind in re.findall(r'typedef struct gn_\w+ \{\n(.*?)\n\} (gn_\w+_options);', text, re.S):
            fields = re.findall(r'^ +(?:gn_array \*|\w+ )([\w, \[\]]+);(?: *// (.*(?:\n +// .*)*))?', body, re.M)
            found[kind] = '; '.join('%s: %s' % (re.sub(r'\[\d\]', '', n.replace('ignores', 'ignored')), re.sub(r'\n *//', '', what).rstrip('.'))
                                    for n, what in fields if what)
    return found


def doc(text, options):
    """The same for JavaScript, as a comment of the declarations."""
    text = '. '.join(t.rstrip('.') for t in (text, options) if t)
    if not text:
        return []
    for was, becomes in SAID:
        text = re.sub(was, becomes, text)
    return textwrap.wrap('/** ' + text + ' */', 122, initial_indent='    ', subsequent_indent='        ', break_long_words=False,
                         break_on_hyphens=False)


def options(text):
    """The layouts of structs that hold numbers, words and arrays alone: {type: [(field, letter, offset, ...)]}, and their
    sizes. A flag whose field says only that the next one counts is set where that is given."""
    found = {}
    sizes = {'double': 8, '_Bool': 1, 'int64_t': 8, 'int': 4, 'gn_array *': 4}
    sizes.update((e, 4) for e in ENUMS)
    for body, name in re.findall(r'typedef struct \w* ?\{([^{}]*)\} (gn_\w+_options|gn_plateau);', text):
        at, fields, flag = 0, [], []
        for kind, names in re.findall(r'(%s) ?([\w, \[\]]+);' % '|'.join(map(re.escape, sizes)), body):
            size = sizes[kind]
            for n in names.split(','):
                n, many = re.fullmatch(r'(\w+)(?:\[(\d+)\])?', n.strip()).groups()
                at = (at + size - 1) // size * size
                if n == 'ignores':
                    flag = [at]
                else:
                    fields.append((n, KIND[kind] + (many or ''), at) + tuple(flag))
                    flag = []
                at += size * int(many or 1)
        if len(fields) + ('ignores' in body) == len(re.findall(r'[,;]', body)):
            found[name] = fields + [('', '', (at + 7) // 8 * 8)]
    return found


def words(text):
    """The words of each enum: those of its names behind what they begin with, and NumPy's numbers for orders of norms."""
    found = []
    for e in ENUMS:
        names = re.findall(r'GN_[A-Z0-9_]+', re.search(r'typedef enum %s \{([^{}]*)\}' % e, text).group(1))
        if e == 'gn_interpolation':
            names = [n.replace('GN_', 'GN_X_') for n in names]
        found.append([camel(n.split('_', 2)[2].lower()).replace('minus_', '-').replace('minus', '-').lower() if e == 'gn_norm_order' else
                      camel('_'.join(n.split('_')[2:]).lower()) for n in names])
    return found


def default(name, word, k):
    if k == 'b':
        return DEFAULTS.get(word, 'false')
    if word == 'n' and LENGTHS.match(name):
        return '0'
    return DEFAULTS.get(name + ' ' + word, DEFAULTS.get(word))


def parse(text, hand):
    """(name, result, [(letter, parameter, layout)]) of each function that has a form here."""
    layouts, known, wrong = options(text), [], []
    declared = re.findall(r'extern ((?:const )?(?:struct )?\w+ (?:\*+ ?)?)(gn_\w+)\(([^;]*)\);', text)
    for result, name, parameters in declared:
        if name in hand:
            continue
        ps = [re.fullmatch(r'(.*?)\s*(\w+)', p.strip()).groups() for p in parameters.split(',')]
        result = result.strip()
        letters, i = [], 0
        while i < len(ps):
            kind, word = ps[i]
            layout = layouts.get(kind.replace('const ', '').replace(' *', ''))
            k = KIND.get(kind, 'O' if layout else None)
            if k is None or result not in RESULT or i == 0 and k not in 'gapAlP' or k == 'o' and name not in FIRST:
                wrong.append(name)
                break
            if k in 'ANI':
                i += 1 # its count follows
                if i == len(ps) or ps[i] != ('int', 'count'):
                    sys.exit('make_js.py: %s: no count behind %s' % (name, word))
            if k == 'x' and name in LAST_AXIS:
                k = 'y'
            if k == 'o' and name in WANTED:
                k = 'w'
            if k == 'i' and word == 'axis':
                k = 'j'
            if k == 'a' and i > 0 and word in INTEGERS:
                k = 'k'
            letters.append((k, word, layout))
            i += 1
        known.append((name, RESULT.get(result), letters))
    if wrong:
        sys.exit('make_js.py: gpunum.js needs these by hand, or why not (by_hand.txt): ' + ' '.join(wrong))
    gone = set(hand) - {d[1] for d in declared}
    if gone:
        sys.exit('make_js.py: by_hand.txt has what gpunum.h has not: ' + ' '.join(sorted(gone)))
    return known


def fields_of(layout):
    return '{' + ', '.join('%s: [%s]' % (camel(f[0]), ', '.join('%r' % x for x in f[1:])) for f in layout[:-1]) + ', size: [%r, %d]}' % ('', layout[-1][2])


def main():
    text = re.sub(r'\s+', ' ', open(sys.argv[1]).read())
    out = sys.argv[2]
    hand = by_hand()
    known = parse(text, hand)
    if len(known) < 200:
        sys.exit('make_js.py: only %d functions' % len(known))
    names = {k[0] for k in known}
    lists = words(text)
    TYPE.update((str(i), ' | '.join("'%s'" % w for w in ws if not re.match(r'-?\d', w)) + (' | number' if '1' in ws else '')) for i, ws in enumerate(lists))
    said, told = comments(), None
    kinds = {n: next(iter(re.findall(r'gn_\w+_options', p)), None) for n, p in re.findall(r'(gn_\w+)\(([^;]*)\);', text)}
    rows, classes = [], {'Context': [], 'NDArray': [], 'Optimizer': []}
    for name, result, ps in known:
        scalar = name + '_s' in names
        if name.endswith('_s') and name[:-2] in names:
            continue # the method takes numbers too
        word = camel(re.sub('_(s|list)$', '', re.sub('^gn_(optimizer_)?', '', name)))
        owner = {'a': 'NDArray', 'p': 'Optimizer'}.get(ps[0][0], 'Context')
        outs = [p for p in ps if p[0] in 'ow']
        layout = next((p[2] for p in ps if p[0] in 'OP'), None)
        given = ', '.join('%d: %s' % (i, default(name, w, k)) for i, (k, w, _) in enumerate(ps) if k in 'dilubjt' and default(name, w, k) not in (None, 'false'))
        fields = fields_of(layout) if layout else 'null'
        more = ', %s, {%s}' % (fields, given) if given else ', ' + fields if layout else ''
        rows.append('    [%r, %r, %r, %r, %r%s],' % (owner, word, name, result, ''.join(p[0] for p in ps), more))
        inputs = [p for p in ps if p[0] not in 'og']
        if owner == 'NDArray' or owner == 'Optimizer':
            inputs = inputs[1:]
        inputs.sort(key=lambda p: p[0] == 't') # the dtype comes last, float32 where none is given
        may = lambda k, w: k in 'xyjOw0123456' or k in 'ak' and w in LEFT_OUT.get(name, '').split() or k in 'dilub' and default(name, w, k) or \
            k == 't' and name != 'gn_cast'
        needed = max([i for i, (k, w, _) in enumerate(inputs) if not may(k, w)] + [-1])
        wants = []
        for i, (k, w, lay) in enumerate(inputs):
            kind = TYPE.get(k) or '{ ' + '; '.join('%s?: %s' % (camel(f[0]), TYPE[f[1][0]] + (' | number[]' if f[1][1:] else '')) for f in lay[:-1]) + ' }'
            if k in 'akO' and may(k, w):
                kind += ' | null'
            if 'shape' not in [p[1] for p in inputs]: # gamma's
                w = {'ss': 'shape', 'tt': 'dtype', '3r': 'reduction'}.get(k + w, w)
            w = camel(w)
            wants.append('%s%s: %s' % (w + '_' if w in ('default', 'in', 'var') else w, '' if i <= needed else '?', kind))
        lines = doc(said.get(name), said.get(kinds[name]))
        classes[owner] += lines if lines != told else [] # once for neighbours
        told = lines
        gives = {'a': 'NDArray', 'l': 'number', 'i': 'number'}.get(result, TYPE[result])
        if outs:
            several = '[' + ', '.join(l + ': NDArray' for l in [FIRST[name]] + [camel(o[1]) for o in outs]) + ']'
        if outs and name in WANTED:
            classes[owner].append('    %s(%s): %s;' % (word, ', '.join([re.sub(r'^(\w+)\?: (.*)', r'\1: \2 | undefined', w) for w in wants[:-1]] + ['indices: true']), several))
            wants.pop()
        elif outs:
            gives = several
        classes[owner].append('    %s(%s): %s;' % (word, ', '.join(wants), gives))
    with open(os.path.join(out, 'calls.js'), 'w') as f:
        f.write('// Made by tools/web/make_js.py: [class, method, function, result, parameters, options, numbers that may be left out, by their\n'
                '// place]; letters are in make_js.py.\n')
        f.write(('export const words = %r;\n' % lists).replace("'", '"'))
        f.write(('export const printing = %s;\n' % fields_of(options(text)['gn_print_options'])).replace("'", '"'))
        f.write('export const calls = [\n' + '\n'.join(rows).replace("'", '"') + '\n];\n')
    declared = open(os.path.join(HERE, 'gpunum.d.ts')).read()
    for c, lines in classes.items():
        declared = declared.replace('    // @methods of %s\n' % c, '\n'.join(lines) + '\n')
    open(os.path.join(out, 'gpunum.d.ts'), 'w').write(declared)
    with open(os.path.join(out, 'layout.h'), 'w') as f:
        for kind, layout in options(text).items():
            for field in layout[:-1]:
                f.write('typedef char %s_has_%s[offsetof(%s, %s) == %d ? 1 : -1];\n' % (kind, field[0], kind, field[0], field[2]))
            f.write('typedef char %s_is_small[sizeof(%s) <= %d ? 1 : -1];\n' % (kind, kind, layout[-1][2]))
    with open(os.path.join(out, 'exports.txt'), 'w') as f:
        used = re.findall(r'\b_(gn_(?!web)\w+)', open(os.path.join(HERE, 'gpunum.js')).read())
        f.write('\n'.join('_' + n for n in sorted(names | set(used))) + '\n_malloc\n_free\n')


main()
