#!/usr/bin/env python3
"""Writes names.h for test_names.c: a call of every public function that takes an array or a context.

make_names.py HEADER.i API NAMES.h, where HEADER.i is gpunum.h after the preprocessor and API the folder of its public rooms.
It fails on a type of parameter that is not in ARGUMENT, and on a macro that takes arguments and is made of anything else
than functions, which the manual's paragraph 'Other languages' names.
"""
import glob
import os
import re
import sys

# What stands for a parameter of that type: fields of test_names.c's struct arguments, in turn where they are lists.
ARGUMENT = {
    'gn_array *': 'a[{}]', 'const gn_array *': 'a[{}]', 'gn_array *const *': 'list', 'gn_array **': '&out[{}]',
    'gn_context *': 'g', 'const gn_context *': 'g', 'double': 'x[{}]', 'int': 'i[{}]', 'int64_t': 'n[{}]',
    'gn_axes': 'axes', 'gn_dtype': 'dtype', 'gn_shape': 'shape', 'size_t': 'bytes', 'uint64_t': '(uint64_t)v->i[{}]',
    '_Bool': 'i[0] > 0', 'gn_fft_norm': '(gn_fft_norm)v->i[3]', 'gn_convolution': '(gn_convolution)v->i[3]',
    'gn_norm_order': '(gn_norm_order)v->i[3]',
    'gn_reduction': '(gn_reduction)v->i[3]', 'gn_interpolation': '(gn_interpolation)v->i[3]',
    'gn_pad_mode': '(gn_pad_mode)v->i[3]',
    'gn_device': '(gn_device)v->i[3]', 'const int *': 'ints', 'const int64_t *': 'longs', 'uint64_t *': '&words[{}]',
    'void *': 'memory', 'const void *': 'memory', 'const double *': 'memory', 'const char *': 'text', 'const char *const *': 'texts', 'char': '(char)v->i[3]', 'gn_done_fn': '&done', 'gn_free_fn': 'NULL',
    'gn_function': '&function', 'gn_custom_gradient': '&gradient', 'struct DLManagedTensor *': 'NULL',
}
NULL_FOR = re.compile(r'const gn_\w+_options \*|gn_\w+_stats \*|gn_device_info \*')
# Those that open, close, or print to the terminal, and those that act on what these made.
LEFT_OUT = {'gn_open_version', 'gn_open_async_version', 'gn_close', 'gn_print', 'gn_string_free', 'gn_error', 'gn_error_clear', 'gn_scope_begin',
            'gn_scope_end', 'gn_no_grad_begin', 'gn_no_grad_end', 'gn_autocast_begin', 'gn_autocast_end', 'gn_profile_begin', 'gn_profile_end', 'gn_seed', 'gn_seed_split'}
# Macros whose name stands in messages for that of the function behind them.
NAMED_BY_MACRO = {'gn_einsum_list': 'gn_einsum'}


def argument(kind, counts):
    text = ARGUMENT.get(kind, 'NULL' if NULL_FOR.fullmatch(kind) else None)
    if text is None:
        sys.exit('make_names.py: no argument for a parameter of type ' + kind)
    turn = 'i' if '->i[' in text else text.split('[')[0]
    if '{}' in text:
        counts[turn] = counts.get(turn, -1) + 1
        text = text.format(counts[turn])
    if text == 'NULL' or text.startswith('('):
        return text
    if text in ('&function', '&done', '&gradient'):
        return text[1:]
    return '&v->' + text[1:] if text.startswith('&') else 'v->' + text


def check_macros(folder, functions):
    text = ''.join(open(p).read() for p in sorted(glob.glob(os.path.join(folder, '*.h'))))
    manual = re.sub(r'\s*\n//\s*', ' ', text[text.index('// Other languages.'):].split('\n//\n')[0])
    macros = re.findall(r'^#define (gn_\w+|GN_\w+)\(([^)]*)\)((?:.*\\\n)*.*)', text, re.M)
    macros = {name: body for name, _, body in macros if not re.match('GN_X$|GN_SCOPE_NAME|GN_[A-Z]+_LIST$', name)}
    if len(macros) < 7:
        sys.exit('make_names.py: only %d macros in %s' % (len(macros), folder))
    for name, body in macros.items():
        called = re.findall(r'\b(gni?_\w+)\(', body)
        called = [re.sub('gni_(shape|axes)_pack', r'gn_\1_from', c) for c in called] # C++'s templates over them
        if not called or not set(called) <= functions:
            sys.exit('make_names.py: no function behind macro ' + name)
        if name + ' ' + ' and '.join(called) not in manual:
            sys.exit('make_names.py: the manual does not name the function behind macro ' + name)


def main():
    text = re.sub(r'\s+', ' ', open(sys.argv[1]).read())
    found = re.findall(r'extern ((?:const )?\w+ (?:\*+ ?)?)(gn_\w+)\(([^()]*)\);', text)
    if len(found) < 200:
        sys.exit('make_names.py: only %d functions in %s' % (len(found), sys.argv[1]))
    check_macros(sys.argv[2], {name for _, name, _ in found})
    lines, table = [], []
    for result, name, parameters in found:
        kinds = [re.sub(r'\b\w+$', '', p.strip()).strip() for p in parameters.split(',')]
        of_its_own = re.search(r'gn_(optimizer|params|loader) \*', ' '.join(kinds)) or re.search(r'gn_(params|loader) \*', result)
        if name in LEFT_OUT or of_its_own or not re.search('gn_array|gn_context', parameters):
            continue
        counts = {}
        call = '%s(%s)' % (name, ', '.join(argument(k, counts) for k in kinds))
        result = result.strip()
        if result == 'gn_array *':
            call = 'return ' + call + ';'
        elif result == 'char *':
            call = 'gn_string_free(v->g, %s); return NULL;' % call
        else:
            call = ('' if result == 'void' else '(void)') + call + '; return NULL;'
        lines.append('static gn_array *call_%s(arguments *v) { %s }' % (name, call))
        table.append('    {"%s", "%s", call_%s, %d, %d, %d},' % (
            name, NAMED_BY_MACRO.get(name, name), name, counts.get('a', -1) + 1, 'gn_array *const *' in kinds,
            result == 'gn_array *'))
    with open(sys.argv[3], 'w') as f:
        f.write('\n'.join(lines) + '\nstatic const public_function functions[] = {\n' + '\n'.join(table) + '\n};\n')


main()
