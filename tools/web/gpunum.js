// gpunum.h in JavaScript: arrays, transforms and training on WebAssembly.
//
//     import { open } from 'gpunum';
//     const g = await open();
//     const x = g.randn([3, 4]), y = x.matmul(x.transpose()).add(1);
//     console.log(String(y), await y.read());
//
// Methods are the functions of gpunum.h without gn_, in camel case (gn_log_softmax is a.logSoftmax); where that takes an
// array a number or a list does as well, and what may be left out is what NumPy or PyTorch take then (an axis: gpunum.d.ts).
// A failed call throws an Error with gpunum's words.
//
// Who owns arrays: whoever made them, until dispose(), the end of the scope that they were made in, or until the garbage
// collector finds that nobody holds them any more. g.scope(() => { ... return y; }) disposes of all that was made inside but
// for what is returned; `using s = g.scope()` does it at the end of the block, but for s.keep(y). Optimizers, parameter lists
// and loaders are of no scope; the collector finds them too.
//
// Where the browser has WebGPU, arrays are on the GPU (open's `backend` says otherwise). A page cannot wait for a GPU, so
// that values come as promises: read(), value(), toList() and text() in the place of readSync(), item(), toArray() and
// toString(), which throw there, as does what a GPU does not do (float64, decompositions, files) with an array that is there:
// it takes await a.host().

import { calls, printing, words } from './calls.js';

const F32 = 0, F64 = 3, I64 = 5, BOOL = 9, U64 = 14;
// By gn_dtype: name, typed array, numbers for each element. Float16 and bfloat16 are read as their bits.
const dtypes = [['f32', Float32Array, 1], ['f16', Uint16Array, 1], ['bf16', Uint16Array, 1], ['f64', Float64Array, 1],
    ['i32', Int32Array, 1], ['i64', BigInt64Array, 1], ['u8', Uint8Array, 1], ['i8', Int8Array, 1], ['u32', Uint32Array, 1],
    ['bool', Uint8Array, 1], ['c64', Float32Array, 2], ['c128', Float64Array, 2], ['i16', Int16Array, 1], ['u16', Uint16Array, 1],
    ['u64', BigUint64Array, 1]];
const dtypeNumber = name => {
    const t = dtypes.findIndex(d => d[0] === name);
    if (t < 0) refuse(`no dtype ${name}, of ${dtypes.map(d => d[0]).join(', ')}`);
    return t;
};
const wordNumber = (list, word) => {
    const at = list.indexOf(String(word));
    if (at < 0) refuse(`'${word}' is none of ${list.join(', ')}`);
    return at;
};
const ALL = 1 << 30;

function refuse(text) {
    throw new TypeError('gpunum: ' + text);
}

// A module with one relaxed instruction: what cannot be validated cannot be run.
const RELAXED = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 8, 1, 96, 3, 123, 123, 123, 1, 123, 3, 2, 1, 0, 10, 13, 1, 11, 0,
    32, 0, 32, 1, 32, 2, 253, 133, 2, 11]);

export class GpunumError extends Error {
    constructor(message, status) {
        super(message);
        this.name = 'GpunumError';
        this.status = status;
    }
}

const abandoned = new FinalizationRegistry(({ g, ptr, free }) => g.alive && g.m[free](ptr));

// What the library holds for an object of JavaScript, until dispose() or the garbage collector.
class Held {
    #what;
    #free;
    constructor(g, ptr, what, free) {
        this.context = g;
        this.ptr = ptr;
        this.#what = what;
        this.#free = free;
        abandoned.register(this, { g, ptr, free }, this);
    }
    // Its address; what was disposed of has none.
    get address() {
        if (this.ptr === 0) throw new GpunumError(`this ${this.#what} was disposed of${this instanceof NDArray ? ', or its scope has ended' : ''}`, 10);
        if (!this.context.alive) throw new GpunumError(`the context of this ${this.#what} was closed`, 10);
        return this.ptr;
    }
    // Nobody frees it here.
    forget() {
        abandoned.unregister(this);
        this.ptr = 0;
    }
    dispose() {
        if (this.ptr === 0) return;
        if (this.context.alive) this.context.m[this.#free](this.ptr);
        this.forget();
    }
}

// Builds of the library in words from which bundlers know what belongs to it. Workers in bundles fail in too many ways, so that
// bundlers see nothing of the builds with threads.
const bundled = {
    'core.mjs': () => import('./core.mjs'),
    'core-gpu.mjs': () => import('./core-gpu.mjs'),
    'core.wasm': () => new URL('./core.wasm', import.meta.url),
    'core-relaxed.wasm': () => new URL('./core-relaxed.wasm', import.meta.url),
    'core-gpu.wasm': () => new URL('./core-gpu.wasm', import.meta.url),
};

async function load(folder, name, file, more) {
    const base = folder === undefined ? import.meta.url : new URL(folder, globalThis.location?.href);
    const at = f => folder === undefined && bundled[f] ? bundled[f]() : new URL(f, base);
    const url = folder !== undefined || !bundled[name] ? at(name).href : '';
    const { default: create } = await (url === '' ? at(name) : import(/* webpackIgnore: true */ /* @vite-ignore */ url));
    return create({ locateFile: f => at(f.endsWith('.wasm') ? file : f).href, ...more });
}

// Why there is one thread only, or ''.
function whyOneThread() {
    if (globalThis.crossOriginIsolated === false || !globalThis.SharedArrayBuffer) return 'this page is not cross-origin isolated: its server does not send the headers COOP and COEP';
    return '';
}

async function loadThreads(folder, file, threads) {
    let timer;
    const late = new Promise((_, failed) => { timer = setTimeout(() => failed(new Error('workers do not start: is COEP sent with scripts too?')), 20000); });
    const m = await Promise.race([load(folder, 'core-threads.mjs', file, { gnWorkers: threads - 1 }), late]).finally(() => clearTimeout(timer)), views = {};
    // Where a worker made the memory larger, views of it are made anew.
    for (const [name, T] of [['HEAPU8', Uint8Array], ['HEAP32', Int32Array], ['HEAPU32', Uint32Array], ['HEAP64', BigInt64Array], ['HEAPF64', Float64Array]])
        Object.defineProperty(m, name, {
            get: () => views[name]?.buffer === m.wasmMemory.buffer ? views[name] : views[name] = new T(m.wasmMemory.buffer),
            set() {},
        });
    return m;
}

// Why there is no GPU to compute on, or ''.
async function whyNoGpu(software) {
    const gpu = globalThis.navigator?.gpu;
    if (!gpu) return `this ${globalThis.window || globalThis.WorkerGlobalScope ? 'browser' : 'engine'} has no WebGPU`;
    const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' }).catch(() => null);
    if (!adapter) return 'WebGPU has no adapter here';
    return adapter.info?.isFallbackAdapter && !software ? `WebGPU is made of software here (${adapter.info.architecture})` : '';
}

async function openGpu(folder, seed, log, place, threads) {
    const m = await load(folder, 'core-gpu.mjs', 'core-gpu.wasm');
    const ptr = await new Promise(done => {
        m.gnOpened = done;
        m._gn_web_open_gpu(seed, log, place);
    });
    if (ptr === 0) throw new GpunumError(m.UTF8ToString(m._gn_open_error()), m._gn_open_status());
    return new Context(m, ptr, false, '', threads === 1 ? '' : 'a context with a GPU has one');
}

// Opens a context. `backend`: 'webgpu', 'cpu', or 'auto': the first where there is a GPU; `placement` of what a context with
// a GPU computes: 'gpu', or 'auto', which leaves small work to the CPU, and where left out the GPU, but for work on a
// thousand numbers at most that are on the CPU; `relaxed`: whether the CPU uses relaxed SIMD, where left out what the engine
// has; `threads` of the CPU, 0 for as many as the machine has: with more than one, workers share the work where the page is
// cross-origin isolated, else device.whyOneThread says why not; `seed` of random numbers; `log`: how urgent must be what is
// told to the console, 'error', 'warning', 'info' or 'debug'; left out: nothing is; `folder`: where the package's files are
// served, if a bundler took gpunum.js from beside them.
export async function open(options) {
    let { backend = 'auto', placement, relaxed, threads = 1, seed = 0, log, folder, ...others } = object(options ?? {}, 'an object of options');
    for (const name in others) refuse(`open: no option ${name}`);
    if (integer(threads, 'open: ') < 0) refuse(`open: ${threads} threads`);
    threads = Math.min(Number(threads) || (globalThis.navigator?.hardwareConcurrency ?? 1), 64);
    seed = big(seed, 'open: ', true);
    log = log === undefined ? 0 : 2 + wordNumber(['error', 'warning', 'info', 'debug'], log);
    wordNumber(['auto', 'cpu', 'webgpu'], backend);
    const place = placement === undefined ? -1 : wordNumber(['auto', 'cpu', 'gpu', 'stay'], placement);
    let why = 'the CPU was asked for';
    if (backend !== 'cpu') {
        why = await whyNoGpu(backend === 'webgpu');
        if (backend === 'webgpu' && why !== '') throw new GpunumError(`open: ${why}`, 8);
        try {
            if (why === '') return await openGpu(folder, seed, log, place, threads);
        } catch (e) {
            if (backend === 'webgpu') throw e;
            why = e.message;
        }
    }
    const able = WebAssembly.validate(RELAXED), fast = relaxed ?? able, form = fast ? '-relaxed' : '';
    if (fast && !able) throw new GpunumError('open: this engine has no relaxed SIMD', 8);
    let whyOne = threads > 1 ? whyOneThread() : '', m;
    if (threads > 1 && whyOne === '') m = await loadThreads(folder, `core-threads${form}.wasm`, threads).catch(e => {
        whyOne = e.message + (folder === undefined ? '; in a bundle: open({ folder }) says where the files of the package are' : '');
    });
    m ??= await load(folder, 'core.mjs', `core${form}.wasm`);
    const ptr = m._gn_web_open(seed, log, threads);
    if (ptr === 0) throw new GpunumError(m.UTF8ToString(m._gn_open_error()), m._gn_open_status());
    return new Context(m, ptr, fast, why, whyOne);
}

class Scope {
    #g;
    constructor(g) {
        this.#g = g;
        this.made = new Set();
        g.scopes.push(this);
    }
    // Leaves arrays, also those in lists and objects, to the scope around this one.
    keep(value, seen = new Set()) {
        if (value instanceof NDArray) {
            if (this.made.delete(value)) this.#outer()?.made.add(value);
        } else if ((Array.isArray(value) || Object.getPrototypeOf(value ?? 0) === Object.prototype) && !seen.has(value)) {
            seen.add(value);
            for (const v of Object.values(value)) this.keep(v, seen);
        }
        return value;
    }
    #outer() {
        return this.#g.scopes[this.#g.scopes.indexOf(this) - 1];
    }
    end() {
        const at = this.#g.scopes.indexOf(this);
        if (at >= 0) this.#g.scopes.splice(at, 1);
        for (const a of this.made) a.dispose();
        this.made.clear();
    }
}

export class Context {
    constructor(m, ptr, relaxed, why, whyOneThread) {
        this.m = m;
        this.why = why;
        this.whyOneThread = whyOneThread;
        this.open = ptr;
        this.relaxed = relaxed;
        this.scopes = [];
        this.large = [];
        this.functions = new Map(); // by number, those that C calls
        this.numbers = 0;
        m.gnCall = (n, list, count) => this.called(n, ({ forward }, s) => this.handed(s, [forward(...this.lent(list, count))])[0]) ?? 0;
        m.gnDerive = (n, list, count, y, gy, gx) => this.called(n, ({ backward }, s) => {
            const found = backward(...this.lent([gy, y]), ...this.lent(list, count)), all = Array.isArray(found) ? found : [found];
            if (all.length !== count) refuse(`custom: ${all.length} gradients of ${count} inputs`);
            m.HEAPU32.set(this.handed(s, all), gx >>> 2);
        });
        m.gnForget = n => this.functions.delete(n);
    }
    get alive() { return this.open !== 0; }
    // Its address; one that was closed has none.
    get ptr() {
        if (this.open === 0) throw new GpunumError('this context was closed', 10);
        return this.open;
    }
    // What computes, in words, why there is no GPU, and why there is one thread where more were asked for.
    get device() {
        const { m, ptr, relaxed, why, whyOneThread } = this;
        return { backend: ['auto', 'cpu', 'vulkan', 'webgpu'][m._gn_web_number(ptr, 0)], relaxed, threads: m._gn_web_number(ptr, 1) || 1,
            name: m.UTF8ToString(m._gn_web_device(ptr, 0)), why, whyOneThread };
    }
    get memory() {
        const [arrays, bytes, gpuBytes] = [0, 1, 2].map(i => this.m._gn_web_memory(this.ptr, i));
        return { arrays, bytes, gpuBytes };
    }
    // A promise that all work so far is done.
    async sync() {
        this.m._gn_flush(this.ptr);
        this.check();
        await this.m.gnGpu?.queue.onSubmittedWorkDone();
        if (this.alive) this.check();
    }
    close() {
        if (this.alive) this.m._gn_close(this.ptr);
        this.m.PThread?.terminateAllThreads();
        this.open = 0;
    }
    // From a number, nested lists of numbers or a typed array. Integers of JavaScript become float32 where no dtype is said.
    array(data, shape, dtype) {
        let t = F32;
        if (typeof shape === 'number') shape = [shape];
        if (shape !== undefined && !Array.isArray(shape)) refuse(`array: ${kindOf(shape)} where a shape is asked for`);
        if (data instanceof Uint8ClampedArray) data = new Uint8Array(data.buffer, data.byteOffset, data.length);
        if (ArrayBuffer.isView(data)) {
            t = dtypes.findIndex(d => data instanceof d[1] && d[0] !== 'f16' && d[0] !== 'bf16' && d[0] !== 'bool');
            shape ??= [data.length];
        } else {
            shape ??= shapeOf(data);
            data = Array.isArray(data) ? data.flat(Infinity) : [data];
            if (typeof data[0] === 'boolean') t = BOOL;
        }
        if (t < 0) refuse('no dtype for this kind of typed array');
        const into = dtype === undefined ? t : dtypeNumber(dtype), count = shape.reduce((n, d) => n * Number(d), 1);
        const [, T, each] = dtypes[into], whole = each === 1 || data.length === 2 * count;
        if (ArrayBuffer.isView(data) && each === 2 && whole) data = T.from(data, Number);
        if (!ArrayBuffer.isView(data)) { // complex numbers as pairs, or real ones, which are cast as those for float16 are
            t = whole && T !== Uint16Array || dtype === 'u16' ? into : F64;
            const N = dtypes[t][1], integers = /^[iu]/.test(dtypes[t][0]), wide = N === BigInt64Array || N === BigUint64Array;
            const one = v => wide && typeof v === 'bigint' ? v : wide ? big(Math.trunc(number(v)), '', true) : integers ? Math.trunc(number(v)) : t === BOOL ? number(v) !== 0 : number(v);
            const list = data;
            data = N.from(list, one);
            if (integers) list.forEach((v, i) => { if (data[i] !== one(v)) throw new GpunumError(`array: ${v} is outside of ${dtype}`, 1); });
        } else if (whole && T === data.constructor) {
            t = into; // pairs, or the bits of float16
        }
        if (data.length !== count * dtypes[t][2]) throw new GpunumError(`array: ${data.length} numbers do not make (${shape})`, 2);
        const a = this.own(this.stacked(m => {
            const s = this.shape(shape);
            return this.bytes(data, at => m._gn_array_from(this.ptr, t, s, at));
        }));
        if (t === into) return a;
        const b = a.cast(dtype);
        a.dispose();
        return b;
    }
    scalar(value, dtype = 'f32') {
        return this.own(this.m._gn_scalar(this.ptr, dtypeNumber(dtype), number(value, 'scalar: ')));
    }
    // A bigint keeps all of its digits; a complex number is a pair.
    full(shape, value, dtype = 'f32') {
        const { m, ptr } = this, t = dtypeNumber(dtype), [, T, each] = dtypes[t];
        return this.own(this.stacked(() => {
            const s = this.shape(typeof shape === 'number' ? [shape] : shape);
            if (each === 1 && (typeof value !== 'bigint' || t !== I64 && t !== U64)) return m._gn_full(ptr, t, s, number(value, 'full: '));
            const at = m.stackAlloc(24) + 7 & ~7, one = new T(m.HEAPU8.buffer, at, each);
            if (each === 1) one[0] = value;
            else [value, 0].flat().slice(0, 2).forEach((v, i) => { one[i] = number(v, 'full: '); });
            return m._gn_full_from(ptr, t, s, at);
        }));
    }
    // From 0 where one number is given.
    arange(start, stop, step = 1, dtype = 'f32') {
        if (stop === undefined) [start, stop] = [0, start];
        return this.own(this.m._gn_arange(this.ptr, dtypeNumber(dtype), ...[start, stop, step].map(v => number(v, 'arange: '))));
    }
    eye(n, m = n, k = 0, dtype = 'f32') {
        return this.own(this.m._gn_eye(this.ptr, dtypeNumber(dtype), ...[n, m, k].map(v => big(v, 'eye: '))));
    }
    // NumPy's name, "float32", and how many bytes an element has.
    dtypeName(dtype) { return this.m.UTF8ToString(this.m._gn_dtype_name(dtypeNumber(dtype))); }
    dtypeSize(dtype) { return this.m._gn_dtype_size(dtypeNumber(dtype)); }
    // What two dtypes become together; null: nothing.
    promote(a, b) { return dtypes[this.m._gn_promote(dtypeNumber(a), dtypeNumber(b))]?.[0] ?? null; }
    // A list of coordinates; `ij`: the first array runs along axis 0, else along axis 1, as NumPy has it.
    meshgrid(arrays, ij = false) {
        return this.stacked(m => {
            const list = this.list(arrays);
            return this.parts(arrays.length, out => m._gn_meshgrid(list, arrays.length, ij ? 1 : 0, out));
        });
    }
    evalAll(arrays) {
        this.stacked(m => m._gn_eval_all(this.list(arrays), arrays.length));
        this.check();
    }
    // averages[i] becomes decay averages[i] + (1 - decay) params[i].
    emaUpdate(averages, params, decay) {
        this.stacked(m => {
            const of = this.list(averages), from = this.list(params);
            if (averages.length !== params.length) refuse(`emaUpdate: ${averages.length} averages of ${params.length} parameters`);
            m._gn_ema_update(of, from, params.length, number(decay, 'emaUpdate: '));
        });
        this.check();
    }
    // Bytes of files: .npy; .npz, of which it gives the array of that name, or all as an object; IDX, which MNIST is in; CSV,
    // also as text; safetensors.
    loadNpy(bytes) {
        return this.own(this.bytes(bytes, (at, n) => this.m._gn_load_npy_memory(this.ptr, at, n)));
    }
    loadNpz(bytes, name) {
        const { m, ptr } = this;
        return this.bytes(bytes, (at, n) => {
            const one = key => this.cstring(key, k => this.own(m._gn_load_npz_memory(ptr, at, n, k)));
            if (name !== undefined) return one(name);
            const text = m._gn_npz_names_memory(ptr, at, n);
            if (text === 0) this.check();
            const names = m.UTF8ToString(text).split('\n').filter(k => k !== '');
            m._gn_string_free(ptr, text);
            return Object.fromEntries(names.map(k => [k, one(k)]));
        });
    }
    loadIdx(bytes) {
        return this.own(this.bytes(bytes, (at, n) => this.m._gn_load_idx_memory(this.ptr, at, n)));
    }
    loadCsv(text, skipLines = 0, delimiter = ',', dtype = 'f32') {
        const values = [], skip = integer(skipLines, 'loadCsv: '), by = separator(delimiter);
        let columns = 0, rows = 0;
        if (dtypes[dtypeNumber(dtype)][2] > 1) throw new GpunumError(`loadCsv: ${dtype} has no form in a table of numbers`, 3);
        (typeof text === 'string' ? text : new TextDecoder().decode(viewOf(bytesOf(text)).slice())).split('\n').forEach((line, i) => {
            if (i < skip || /^\s*$/.test(line)) return;
            const found = line.replace(/\r$/, '').split(by);
            if (rows++ === 0) columns = found.length;
            found.forEach((field, k) => values.push(fieldValue(field, dtype, `loadCsv: line ${i + 1}, column ${k + 1}:`)));
            if (found.length !== columns) throw new GpunumError(`loadCsv: line ${i + 1} has ${found.length} columns, the lines before have ${columns}`, 7);
        });
        return this.array(values, [rows, columns], dtype);
    }
    loadSafetensors(bytes) {
        const p = this.bytes(bytes, (at, n) => this.m._gn_load_safetensors_memory(this.ptr, at, n));
        this.check();
        return new Params(this, p, notesOf(bytes));
    }
    // Bytes of a .npz file, of an object of arrays.
    saveNpz(arrays) {
        object(arrays, 'an object of arrays');
        return this.stacked(m => {
            const list = this.list(Object.values(arrays)), strings = [], p = this.piece(4 * Object.keys(arrays).length);
            for (const name of Object.keys(arrays)) argument(this, 'z', name, strings);
            if (strings.length === 0) return Uint8Array.of(80, 75, 5, 6, ...new Array(18).fill(0)); // the end of an archive
            m.HEAPU32.set(strings, p >>> 2);
            return this.saved((to, n) => m._gn_save_npz_memory(list, p, strings.length, to, n));
        });
    }
    // Named arrays: the parameters of a model.
    params(arrays = {}) {
        const p = new Params(this, this.m._gn_params_new(this.ptr));
        for (const [name, a] of Object.entries(object(arrays, 'an object of arrays'))) p.add(name, a);
        return p;
    }
    // Deals the rows of arrays out in batches.
    loader(arrays, options) {
        const { batch = 1, shuffle = false, dropLast = false, seed = 0, ...others } = object(options ?? {}, 'an object of options');
        for (const name in others) refuse(`loader: no option ${name}`);
        const l = this.stacked(m => {
            const list = this.list(arrays);
            if (arrays.length < 1 || arrays.length > 32) refuse(`loader: ${arrays.length} arrays where 1 to 32 can be`);
            return m._gn_web_loader(this.ptr, list, arrays.length, big(batch, 'loader: '), shuffle ? 1 : 0, dropLast ? 1 : 0, big(seed, 'loader: ', true));
        });
        this.check();
        return new Loader(this, l, arrays.length);
    }
    // With a function: runs it, and disposes of what it made but for what it returns. Without: a scope that its `using` ends.
    scope(fn) {
        const s = new Scope(this);
        if (fn === undefined) return s;
        try {
            const value = fun(fn)(s);
            if (typeof value?.then === 'function') refuse('a scope by function cannot wait; write `using s = g.scope()`');
            return s.keep(value);
        } finally {
            s.end();
        }
    }
    // Nothing that fn computes is recorded for gradients.
    noGrad(fn) {
        fun(fn);
        this.m._gn_no_grad_begin(this.ptr);
        try {
            return fn();
        } finally {
            this.m._gn_no_grad_end(this.ptr);
        }
    }
    // What fn computes with products, convolutions and attention is in halves of that dtype.
    autocast(dtype, fn) {
        fun(fn);
        this.m._gn_autocast_begin(this.ptr, dtypeNumber(dtype));
        this.check();
        try {
            return fn();
        } finally {
            this.m._gn_autocast_end(this.ptr);
        }
    }
    // forward(...inputs) with a derivative of its own: backward(gy, y, ...inputs) gives the gradient of each input, in a list
    // where there are several, null for one that needs none. What either makes is disposed of but for what it returns.
    custom(forward, backward, inputs) {
        return this.recorded(forward, fun(backward), inputs);
    }
    // fn(...inputs), computed again in backward() instead of kept.
    checkpoint(fn, inputs) {
        return this.recorded(fn, null, inputs);
    }
    // The largest error of fn's gradients at these inputs beside differences of its values.
    gradcheck(fn, inputs, step = 0) {
        const n = this.numbered(fn, null);
        try {
            const worst = this.stacked(m => m._gn_web_gradcheck(this.list(inputs), inputs.length, number(step, 'gradcheck: '), n));
            this.check();
            return worst;
        } finally {
            this.functions.delete(n);
        }
    }
    // d loss / d params[i], without touching grad.
    gradients(loss, params, createGraph = false) {
        return this.stacked(m => {
            const at = this.mine(loss), list = this.list(params);
            return this.parts(params.length, out => m._gn_gradients(at, list, params.length, createGraph ? 1 : 0, out));
        });
    }

    // ---- for this module
    // Until the GPU has answered something.
    async answer() {
        await Promise.all([...this.m.gnGpu?.futures.values() ?? []].map(f => f.wait));
        if (this.alive) this.m._gn_poll(this.ptr);
    }
    check() {
        const { m, ptr, thrown } = this, status = m._gn_status_get(ptr);
        if (thrown !== undefined) { // by a function that C called
            this.thrown = undefined;
            m._gn_error_clear(ptr);
            throw thrown.error;
        }
        if (status === 0) return;
        const text = m.UTF8ToString(m._gn_error(ptr)), arrays = m._gn_web_memory(ptr, 0);
        m._gn_error_clear(ptr);
        throw new GpunumError(status === 4 ? `${text}; ${arrays} arrays are alive, of which a scope or dispose() would let go at once` : text, status);
    }
    // Memory for so many bytes, and bytes in it. Addresses beyond 2 GB are no int32: they are shifted by >>>.
    room(bytes) {
        const p = bytes < 2 ** 32 ? this.m._malloc(bytes) >>> 0 : 0;
        if (p === 0) throw new GpunumError(`out of memory (${bytes} bytes)`, 4);
        return p;
    }
    copied(data) {
        const p = this.room(data.byteLength + 1);
        this.m.HEAPU8.set(viewOf(data), p);
        return p;
    }
    // The address of an array of this context: another one's memory is another.
    mine(a) {
        if (!(a instanceof NDArray)) refuse(`${typeof a} where an array is asked for`);
        if (a.context !== this) throw new GpunumError('this array belongs to another context', 1);
        return a.address;
    }
    own(ptr) {
        if (ptr === 0) this.check();
        if (ptr === 0) throw new GpunumError('there is no array in the list', 1);
        const a = new NDArray(this, ptr);
        this.scopes[this.scopes.length - 1]?.made.add(a);
        return a;
    }
    // One more reference to an array that the library lends.
    borrow(ptr) {
        const a = this.own(this.m._gn_retain(ptr));
        a.borrowed = true;
        return a;
    }
    // What f gives. Room that it takes, on the stack or where that would be too much, is free again afterwards.
    stacked(f) {
        const { m, large } = this, sp = m.stackSave(), n = large.length;
        try {
            return f(m);
        } finally {
            m.stackRestore(sp);
            for (const p of large.splice(n)) m._free(p);
        }
    }
    piece(bytes) {
        if (bytes < 4096) return this.m.stackAlloc(bytes + 8) + 7 & ~7;
        const p = this.room(bytes);
        this.large.push(p);
        return p;
    }
    // A list of whole numbers, of 32 bits or of 64. What a list lacks is undefined and refused.
    numbersOf(list, wide) {
        if (!Array.isArray(list)) refuse('a list of numbers is asked for');
        const all = Array.from(list, v => wide ? big(v) : integer(v)), p = this.piece(all.length * 8);
        if (wide) this.m.HEAP64.set(all, p >>> 3);
        else this.m.HEAP32.set(all, p >>> 2);
        return p;
    }
    // Arrays that f writes, so many of them.
    parts(count, f) {
        const { m } = this, n = Math.max(count, 0), out = this.room(4 * n + 4);
        try {
            f(out);
            this.check();
            return [...m.HEAPU32.subarray(out >>> 2, (out >>> 2) + n)].map(p => this.own(p));
        } finally {
            m._free(out);
        }
    }
    // What f gives of bytes, or of text, in the library's memory.
    bytes(data, f) {
        const at = this.copied(bytesOf(data));
        try {
            return f(at, data.byteLength);
        } finally {
            this.m._free(at);
        }
    }
    cstring(text, f) {
        if (`${text}`.includes('\0')) refuse('a text with a 0 in it');
        return this.bytes(new TextEncoder().encode(`${text}\0`), f);
    }
    // What f writes, asked first how much that is.
    saved(f) {
        const { m } = this, n = f(0, 0);
        if (n === 0) this.check();
        const p = this.room(n + 1);
        f(p, n);
        const copy = m.HEAPU8.slice(p, p + n);
        m._free(p);
        this.check();
        return copy;
    }
    // What a function of JavaScript gives that C calls: its arrays are the library's, which has a scope around the call.
    called(n, f) {
        const s = new Scope(this);
        try {
            return f(this.functions.get(n), s);
        } catch (error) {
            this.thrown ??= { error };
        } finally {
            s.end();
        }
    }
    lent(list, count) {
        const found = Array.isArray(list) ? list : [...this.m.HEAPU32.subarray(list >>> 2, (list >>> 2) + count)];
        return found.map(p => this.borrow(p));
    }
    handed(scope, arrays) {
        const found = arrays.map(a => a === null || a === undefined ? 0 : this.mine(a));
        for (const a of arrays) if (a && !a.borrowed && scope.made.delete(a)) a.forget();
        return found;
    }
    numbered(forward, backward) {
        this.functions.set(++this.numbers, { forward: fun(forward), backward });
        return this.numbers;
    }
    recorded(forward, backward, inputs) {
        const y = this.stacked(m => {
            const list = this.list(inputs), n = this.numbered(forward, backward);
            return m._gn_web_custom(this.ptr, list, inputs.length, n, backward === null ? 0 : 1);
        });
        this.check();
        return this.own(y);
    }
    shape(dims) {
        if (!Array.isArray(dims)) refuse(`${kindOf(dims)} where a shape is asked for`);
        if (dims.length > 8) throw new GpunumError(`rank ${dims.length} is not in 0..8`, 2);
        const p = this.numbersOf([0, ...dims], true);
        this.m.HEAP32[p >> 2] = dims.length;
        return p;
    }
    list(arrays) {
        if (!Array.isArray(arrays)) refuse('a list of arrays is asked for');
        const found = Array.from(arrays, a => this.mine(a)), p = this.piece(4 * found.length + 4);
        this.m.HEAPU32.set(found, p >>> 2);
        return p;
    }
    axes(x) {
        if (x === undefined || x === null) return ALL;
        if (typeof x === 'number') return integer(x);
        if (Array.isArray(x)) return this.stacked(m => m._gn_axes_from(x.length, this.numbersOf(x)));
        if (typeof x !== 'object' || !('keep' in x)) refuse(`${typeof x} where axes are asked for`);
        return this.m._gn_axes_keep(this.axes(x.keep));
    }
}

function shapeOf(data) {
    if (!Array.isArray(data)) return [];
    const inner = shapeOf(data[0]);
    if (inner.length === 0 ? data.some(Array.isArray) : data.some(d => String(shapeOf(d)) !== String(inner)))
        throw new GpunumError(`array: not all lists in one of ${data.length} have the shape (${inner})`, 2);
    return [data.length, ...inner];
}

const kindOf = v => v === null || v === undefined ? String(v) : typeof v;

// `where` of the call it stands, for the message.
function number(v, where = '') {
    const n = ['object', 'undefined', 'symbol', 'function'].includes(typeof v) || v === '' ? NaN : Number(v);
    if (n !== n && typeof v !== 'number') refuse(`${where}${kindOf(v)} where a number is asked for`);
    return n;
}

function integer(v, where = '') {
    const n = number(v, where);
    if (!Number.isInteger(n) || n !== (n | 0)) refuse(`${where}${v} where a whole number of 32 bits is asked for`);
    return n;
}

// Of 64 bits; seeds have no sign.
function big(v, where = '', seed = false) {
    const n = typeof v === 'bigint' ? v : number(v, where);
    if (typeof n === 'number' && !Number.isInteger(n)) refuse(`${where}${v} where a whole number is asked for`);
    const b = BigInt(n);
    if (b !== BigInt.asIntN(64, b) && !(seed && b === BigInt.asUintN(64, b))) refuse(`${where}${v} where a whole number of 64 bits is asked for`);
    return b;
}

function object(x, what) {
    if (typeof x !== 'object' || x === null || Array.isArray(x) || x instanceof Held) refuse(`${Array.isArray(x) ? 'a list' : kindOf(x)} where ${what} is asked for`);
    return x;
}

function addressOf(x, of, what) {
    if (!(x instanceof of)) refuse(`${kindOf(x)} where ${what} is asked for`);
    return x.address;
}

function bytesOf(data) {
    if (!(data instanceof ArrayBuffer || ArrayBuffer.isView(data))) refuse(`${kindOf(data)} where bytes are asked for, an ArrayBuffer or a typed array`);
    return data;
}

// Memory that is shared is no text for a browser's TextDecoder: it takes a slice of this.
const viewOf = data => new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength);

function fun(f) {
    if (typeof f !== 'function') refuse(`${kindOf(f)} where a function is asked for`);
    return f;
}

// Numbers in tables, as strict as gn_load_csv.
function separator(text) {
    if (typeof text !== 'string' || text.length !== 1 || /[\w+\-."'\n\r]/.test(text)) refuse(`'${text}' cannot separate numbers`);
    return text;
}

function fieldValue(field, dtype, where) {
    const text = field.trim().replace(/^"(.*)"$/, '$1').trim(), wrong = what => new GpunumError(`${where} '${text}' is ${what} ${dtype}`, 7);
    if (dtype === 'bool' && /^([01]|[Tt]rue|[Ff]alse)$/.test(text)) return /^[1Tt]/.test(text);
    if (/f/.test(dtype)) {
        if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
        const [, sign, word] = /^([+-]?)(inf|infinity|nan)$/i.exec(text) ?? [];
        if (word !== undefined) return (sign === '-' ? -1 : 1) * (/^i/i.test(word) ? Infinity : NaN);
    } else if (dtype !== 'bool' && /^[+-]?\d+$/.test(text)) {
        const value = BigInt(text.replace('+', '')), bits = BigInt(dtype.slice(1)), low = dtype[0] === 'u' ? 0n : -(2n ** (bits - 1n));
        if (value < low || value >= low + 2n ** bits) throw wrong('out of the range of');
        return bits === 64n ? value : Number(value);
    }
    throw wrong('not a number of dtype');
}

// The shortest text from which the same number is read.
function shortest(v, dtype) {
    if (typeof v === 'bigint' || !/^b?f(32|16)/.test(dtype) || !Number.isFinite(v)) return String(v).replace('Infinity', 'inf').replace('NaN', 'nan');
    for (let digits = 1; ; digits++) {
        const near = Number(v.toPrecision(digits));
        if (Math.fround(near) === v) return String(near);
    }
}

// The keys of a safetensors file's metadata, which was read without an error.
function notesOf(bytes) {
    const all = viewOf(bytes), n = new DataView(all.buffer, all.byteOffset).getUint32(0, true);
    return Object.keys(JSON.parse(new TextDecoder().decode(all.slice(8, 8 + n)))['__metadata__'] ?? {});
}

// What bits of float16 and bfloat16 stand for.
function float(bits, dtype) {
    const wide = dtype === 'bf16' ? 7 : 10, most = dtype === 'bf16' ? 255 : 31, e = bits >> wide & most, m = (bits & (1 << wide) - 1) / (1 << wide);
    const size = e === most ? (m > 0 ? NaN : Infinity) : (e > 0 ? 1 + m : 2 * m) * 2 ** (e - (most >> 1));
    return bits >> 15 ? -size : size;
}

function nested(flat, shape, dtype) {
    const pair = dtypes[dtypeNumber(dtype)][2];
    if (/^b?f16$/.test(dtype)) flat = Array.from(flat, v => float(v, dtype));
    let at = 0;
    const take = i => {
        if (i < shape.length) return Array.from({ length: shape[i] }, () => take(i + 1));
        at += pair;
        return pair === 1 ? flat[at - 1] : [flat[at - 2], flat[at - 1]];
    };
    return take(0);
}

export class NDArray extends Held {
    constructor(g, ptr) {
        super(g, ptr, 'array', '_gn_release');
    }
    dispose() {
        super.dispose();
        for (const s of this.context.scopes) s.made.delete(this);
    }
    get shape() {
        const m = this.context.m;
        return Array.from({ length: m._gn_rank(this.address) }, (_, i) => Number(m._gn_dim(this.ptr, i)));
    }
    get bytes() { return this.context.m._gn_bytes(this.address); }
    get size() { return Number(this.context.m._gn_size(this.address)); }
    get dtype() { return dtypes[this.context.m._gn_dtype_of(this.address)][0]; }
    // The elements in C order. Complex ones are pairs, float16 and bfloat16 bits, bool bytes.
    async read() {
        const { m } = this.context, n = m._gn_bytes(this.address), p = this.context.room(n + 24), state = p + n + 7 >>> 3 << 1, dtype = this.dtype;
        m._gn_web_read(this.ptr, p, n, 4 * state);
        m._gn_poll(this.context.ptr);
        while (m.HEAP32[state] === 0 && this.context.alive) await this.context.answer(); // gn_close calls back
        const status = m.HEAP32[state + 1];
        return this.#taken(p, n, dtype, status);
    }
    // The same without a promise, for backends that need not be waited for.
    readSync() {
        const { m } = this.context, n = m._gn_bytes(this.address), p = this.context.room(n + 8), dtype = this.dtype;
        return this.#taken(p, n, dtype, m._gn_read(this.ptr, p, n));
    }
    #taken(p, n, dtype, status) {
        const { m } = this.context, T = dtypes[dtypeNumber(dtype)][1];
        const copy = status === 0 ? m.HEAPU8.slice(p, p + n) : null;
        m._free(p);
        if (copy === null) {
            this.context.check();
            throw new GpunumError(m.UTF8ToString(m._gn_status_string(status)), status);
        }
        return new T(copy.buffer);
    }
    // Nested lists of numbers.
    toArray() {
        return nested(this.readSync(), this.shape, this.dtype);
    }
    // Promises for nested lists, for the one element, for what toString() gives, and for an equal array in the CPU's memory.
    async toList() {
        const { shape, dtype } = this;
        return nested(await this.read(), shape, dtype);
    }
    async value() {
        if (this.size !== 1) throw new GpunumError(`value: (${this.shape}) is not one element`, 2);
        const { dtype } = this;
        if (dtype[0] === 'c') throw new GpunumError(`value: ${dtype} is not a real number`, 3);
        return Number(nested(await this.read(), [], dtype));
    }
    async text(options) {
        const h = await this.host();
        try {
            return h.toString(options);
        } finally {
            h.dispose();
        }
    }
    async host() {
        const { shape, dtype, context } = this, data = await this.read();
        return context.array(data, shape, dtype);
    }
    // The one element.
    item() {
        const value = this.context.m._gn_item(this.address);
        this.context.check();
        return value;
    }
    // The same of integers, exactly, as a bigint.
    itemInt() {
        const value = this.context.m._gn_item_int(this.address);
        this.context.check();
        return this.dtype === 'u64' ? BigInt.asUintN(64, value) : value;
    }
    // Overwrites the elements with those of a typed array.
    write(data) {
        const { m } = this.context, { address, dtype } = this, T = dtypes[dtypeNumber(dtype)][1];
        if (!(data instanceof T) && !(T === Uint8Array && data instanceof Uint8ClampedArray))
            refuse(`write: an array of ${dtype} takes ${T.name}`);
        const p = this.context.copied(data);
        m._gn_write(address, p, data.byteLength);
        m._free(p);
        this.context.check();
        return this;
    }
    eval() {
        this.context.m._gn_eval(this.address);
        this.context.check();
        return this;
    }
    // A copy of the data to where it will be used, 'cpu' or 'gpu'.
    to(device) {
        this.context.m._gn_to(this.address, wordNumber(['cpu', 'gpu'], device));
        this.context.check();
        return this;
    }
    requiresGrad(on = true) {
        this.context.m._gn_requires_grad(this.address, on ? 1 : 0);
        this.context.check();
        return this;
    }
    // The gradient, or null.
    get grad() {
        const p = this.context.m._gn_grad(this.address);
        return p === 0 ? null : this.context.borrow(p);
    }
    // Parts along an axis: equal ones, or where that cannot be the first longer by one; cut in front of places; all of size 1.
    split(sections, axis = 0) {
        const n = integer(sections, 'split: ');
        return this.context.parts(n, out => this.context.m._gn_split(this.address, n, integer(axis, 'split: '), out));
    }
    arraySplit(sections, axis = 0) {
        const n = integer(sections, 'arraySplit: ');
        return this.context.parts(n, out => this.context.m._gn_array_split(this.address, n, integer(axis, 'arraySplit: '), out));
    }
    splitAt(places, axis = 0) {
        return this.context.stacked(m => {
            const c = [this.address];
            argument(this.context, 'N', places, c);
            return this.context.parts(places.length + 1, out => m._gn_split_at(...c, integer(axis, 'splitAt: '), out));
        });
    }
    unstack(axis = 0) {
        const { shape } = this, i = integer(axis, 'unstack: '), count = shape[i < 0 ? i + shape.length : i] ?? 0;
        return this.context.parts(count, out => this.context.m._gn_unstack(this.address, i, out, count));
    }
    // Sums over the last axes of this one with the first of b, so many; or over lists of axes, [of this one, of b].
    tensordot(b, axes = 2) {
        return this.context.own(this.context.stacked(m => {
            const c = [this.address, this.context.mine(b)];
            if (!Array.isArray(axes)) return m._gn_tensordot(...c, 0, 0, integer(axes, 'tensordot: '));
            const [p = [], q = []] = axes.map(x => [x].flat());
            if (p.length !== q.length) refuse(`tensordot: ${p.length} axes with ${q.length}`);
            argument(this.context, 'I', p, c);
            c.pop();
            argument(this.context, 'I', q, c);
            return m._gn_tensordot(...c);
        }));
    }
    // (x - mean[c]) / deviation[c] of images (n, c, h, w).
    normalize(mean, deviation) {
        const both = [mean, deviation].map(list => [list].flat().map(v => number(v, 'normalize: '))), [n, k] = both.map(list => list.length);
        if (n !== k) refuse(`normalize: ${n} means with ${k} deviations`);
        return this.context.own(this.context.stacked(m => m._gn_normalize(this.address, ...both.map(list => {
            const p = this.context.piece(8 * n);
            m.HEAPF64.set(list, p >>> 3);
            return p;
        }), n)));
    }
    saveNpy() {
        return this.context.saved((to, n) => this.context.m._gn_save_npy_memory(this.address, to, n));
    }
    // Text of a CSV file; `header` is its first line.
    saveCsv(header, delimiter = ',') {
        const { shape, dtype } = this, by = separator(delimiter), rows = this.toArray();
        if (shape.length > 2) throw new GpunumError(`saveCsv: an array of ${shape.length} dimensions is no table`, 2);
        if (/^c/.test(dtype)) throw new GpunumError(`saveCsv: ${dtype} has no form in a table of numbers`, 3);
        const lines = [rows].flat().map(row => [row].flat().map(v => shortest(v, dtype)).join(by));
        if (header !== undefined) lines.unshift(header);
        return lines.map(line => line + '\n').join('');
    }
    toString(options) {
        const { m } = this.context, p = this.context.stacked(() => {
            const c = [this.address];
            argument(this.context, 'O', typeof options === 'object' ? options : undefined, c, printing);
            return m._gn_to_string(...c);
        });
        if (p === 0) this.context.check();
        const text = m.UTF8ToString(p);
        m._gn_string_free(this.context.ptr, p);
        return text;
    }
}

for (const f of ['_gn_fftn', '_gn_ifftn', '_gn_rfftn', '_gn_irfftn']) // lengths and axes; of all axes, or as many as there are lengths the last
    NDArray.prototype[f.slice(4)] = function (n, axes, norm) {
        const { context } = this;
        return context.own(context.stacked(m => {
            const c = [this.address];
            if (n && axes && n.length !== axes.length) refuse(`${f.slice(4)}: ${n.length} lengths of ${axes.length} axes`);
            for (const [kind, list] of [['N', n], ['I', axes]]) {
                if (list === undefined || list === null) c.push(0, 0);
                else argument(context, kind, list, c);
                c.pop();
            }
            c.push((n ?? axes ?? []).length);
            argument(context, '0', norm, c);
            return m[f](...c);
        }));
    };

export class Optimizer extends Held {
    constructor(g, ptr) {
        super(g, ptr, 'optimizer', '_gn_optimizer_free');
    }
    get lr() { return this.context.m._gn_lr_get(this.address); }
    set lr(value) {
        this.context.m._gn_lr_set(this.address, number(value, 'lr: '));
        this.context.check();
    }
    // Its states, rate and steps as params.addOptimizer(name, ...) wrote them.
    restore(params, name) {
        const from = addressOf(params, Params, 'a list of parameters');
        this.context.cstring(name, text => this.context.m._gn_optimizer_restore(this.address, from, text));
        this.context.check();
    }
}

// Named arrays in the order in which they came, as a safetensors file has them: for (const [name, a] of params).
export class Params extends Held {
    constructor(g, ptr, notes = []) {
        super(g, ptr, 'list of parameters', '_gn_params_free');
        this.notes = new Set(notes);
    }
    add(name, a) {
        this.context.cstring(name, text => this.context.m._gn_params_add(this.address, text, this.context.mine(a)));
        this.context.check();
        return this;
    }
    get count() { return this.context.m._gn_params_count(this.address); }
    get names() {
        const { m } = this.context;
        return Array.from({ length: this.count }, (_, i) => m.UTF8ToString(m._gn_params_name(this.address, i)));
    }
    // null: there is none of that name.
    get(name) {
        const a = this.context.cstring(name, text => this.context.m._gn_params_get(this.address, text));
        return a === 0 ? null : this.context.borrow(a);
    }
    *[Symbol.iterator]() {
        for (const name of this.names) yield [name, this.get(name)];
    }
    // Text by a key, which is saved too.
    note(key, text) {
        this.context.cstring(key, k => this.context.cstring(text, t => this.context.m._gn_params_note(this.address, k, t)));
        this.context.check();
        this.notes.add(String(key));
        return this;
    }
    noted(key) {
        const text = this.context.cstring(key, k => this.context.m._gn_params_noted(this.address, k));
        return text === 0 ? null : this.context.m.UTF8ToString(text);
    }
    // Bytes of a safetensors file; and one's arrays over those that are here, all of them, or those that are in both.
    save() {
        return this.context.saved((to, n) => this.context.m._gn_params_save_memory(this.address, to, n));
    }
    load(bytes) {
        this.context.bytes(bytes, (at, n) => this.context.m._gn_params_load_memory(this.address, at, n));
        this.context.check();
        this.notes = new Set(notesOf(bytes));
        return this;
    }
    loadMatching(bytes) {
        const lists = this.context.stacked(m => {
            const out = m.stackAlloc(8);
            this.context.bytes(bytes, (at, n) => m._gn_params_load_matching_memory(this.address, at, n, out, out + 4));
            return [m.HEAPU32[out >> 2], m.HEAPU32[(out >> 2) + 1]];
        });
        this.context.check();
        this.notes = new Set(notesOf(bytes));
        const [missing, unused] = lists.map(p => {
            const list = new Params(this.context, p), { names } = list;
            list.dispose();
            return names;
        });
        return { missing, unused };
    }
    addOptimizer(name, optimizer) {
        const of = addressOf(optimizer, Optimizer, 'an optimizer');
        this.context.cstring(name, text => this.context.m._gn_params_add_optimizer(this.address, text, of));
        this.context.check();
        return this;
    }
    // A promise for an equal list in the CPU's memory, which can be saved where this one is on a GPU.
    async host() {
        const p = this.context.params();
        for (const key of this.notes) p.note(key, this.noted(key));
        for (const name of this.names) {
            const a = this.get(name), h = await a.host();
            p.add(name, h);
            a.dispose();
            h.dispose();
        }
        return p;
    }
}

// The batches of an epoch: for (const [x, y] of loader). They are disposed of when the next one comes.
export class Loader extends Held {
    constructor(g, ptr, fields) {
        super(g, ptr, 'loader', '_gn_loader_free');
        this.fields = fields;
    }
    get batches() { return Number(this.context.m._gn_loader_batches(this.address)); }
    // The next batch, which is the caller's; null at the end of an epoch, behind which another one begins.
    next() {
        const found = this.context.stacked(m => {
            const out = m.stackAlloc(4 * this.fields), more = m._gn_loader_next(this.address, out);
            return more ? [...m.HEAPU32.slice(out >> 2, (out >> 2) + this.fields)] : null;
        });
        this.context.check();
        return found?.map(p => this.context.own(p)) ?? null;
    }
    *[Symbol.iterator]() {
        for (let batch; (batch = this.next()) !== null;) {
            try {
                yield batch;
            } finally {
                for (const a of batch) a.dispose();
            }
        }
    }
    // Goes on with that batch of that epoch, both from 0 on.
    seek(epoch, batch = 0) {
        this.context.m._gn_loader_seek(this.address, big(epoch, 'seek: '), big(batch, 'seek: '));
        this.context.check();
    }
}

// What a console of node shows, what JSON has, and no numbers for operators, which would be NaN.
const INSPECT = Symbol.for('nodejs.util.inspect.custom');
Held.prototype[INSPECT] = function () { return `${this.constructor.name} {}`; };
Context.prototype[INSPECT] = function () { return `Context { ${this.alive ? this.device.name : 'closed'} }`; };
NDArray.prototype[INSPECT] = function () {
    try {
        return String(this);
    } catch (e) {
        return `NDArray { ${this.ptr !== 0 && this.context.alive ? `(${this.shape}) ${this.dtype}` : e.message} }`;
    }
};
NDArray.prototype.toJSON = function () { // JSON has no bigint
    const plain = v => Array.isArray(v) ? v.map(plain) : typeof v !== 'bigint' || v !== BigInt(Number(v)) ? v : Number(v);
    return plain(this.toArray());
};
NDArray.prototype[Symbol.toPrimitive] = function (hint) {
    if (hint === 'number')
        refuse('arrays have no operators in JavaScript: a.mul(b) is a * b, a.lt(b) a < b; numbers come by read(), value() and item()');
    return this.toString();
};

if (Symbol.dispose) {
    Scope.prototype[Symbol.dispose] = Scope.prototype.end;
    for (const c of [NDArray, Optimizer, Params, Loader]) c.prototype[Symbol.dispose] = c.prototype.dispose;
    Context.prototype[Symbol.dispose] = Context.prototype.close;
}

// ---- the methods that only hand their arguments on

// What stands for one argument in C, or for two: a list and its count.
function argument(g, kind, x, out, options, made, like) {
    const { m } = g;
    switch (kind) {
    case 'k':
        like = () => 'i32'; // falls through
    case 'a': {
        if (x === undefined || x === null) return out.push(0); // an operand that may be left out; gpunum says where it may not
        if (!(x instanceof NDArray)) { // whole numbers beside integers are some, others are floats that hold them
            const of = like(), list = Array.isArray(x), all = [x].flat(list ? Infinity : 0), integers = /^[iu]/.test(of), whole = all.every(v => Number.isInteger(Number(v)));
            const t = list && typeof all[0] === 'boolean' ? 'bool' : of === 'f64' || of === 'c128' ? 'f64' : !integers || !whole ? 'f32' :
                of === 'u64' && all.every(v => v >= 0) ? of : /64/.test(of) || all.some(v => v != Number(v) >> 0) ? 'i64' : 'i32';
            if (typeof x === 'object' && !list && !ArrayBuffer.isView(x)) refuse('an object where an array or numbers are asked for');
            if (typeof x === 'bigint') x = g.array([x], [], !integers ? 'i64' : BigInt(dtypes[dtypeNumber(of)][1].of(of.endsWith('64') ? x : Number(x))[0]) === x ? of : t);
            else if (ArrayBuffer.isView(x)) x = g.array(x);
            else x = list ? g.array(x, undefined, t) : g.scalar(number(x), of === 'bool' && typeof x !== 'boolean' || integers && !whole ? 'f32' : of);
            made.push(x);
        }
        return out.push(g.mine(x));
    }
    case 's': return out.push(g.shape(typeof x === 'number' ? [x] : x ?? []));
    case 't': return out.push(dtypeNumber(x ?? 'f32'));
    case 'x': return out.push(g.axes(x));
    case 'y': return out.push(x === undefined ? -1 : g.axes(x));
    case 'i': return out.push(integer(x));
    case 'j': return out.push(integer(x ?? -1));
    case 'l': case 'u': return out.push(big(x, '', kind === 'u'));
    case 'd': return out.push(number(x));
    case 'b': return out.push(x ? 1 : 0);
    case 'z': {
        const text = new TextEncoder().encode(String(x) + '\0'), p = g.piece(text.length);
        m.HEAPU8.set(text, p);
        return out.push(p);
    }
    case 'A': return out.push(g.list(x), x.length);
    case 'I': case 'N': return out.push(g.numbersOf(x, kind === 'N'), x.length);
    case 'O': case 'P': {
        if ((x === undefined || x === null) && kind === 'O') return out.push(0);
        const known = Object.keys(options).slice(0, -1).join(', ');
        if (typeof x !== 'object' || x === null || x instanceof NDArray) refuse(`${kindOf(x)} where an object is asked for: ${known}`);
        const p = m.stackAlloc(options.size[1] + 8) + 7 & ~7;
        m.HEAPU8.fill(0, p, p + options.size[1]);
        for (const [name, value] of Object.entries(x)) {
            if (value === undefined) continue;
            if (options[name] === undefined || name === 'size') refuse(`no option ${name}, of ${known}`);
            const [k, at, flag] = options[name], many = Number(k.slice(1) || 1); // of a list one number stands for all
            if (flag !== undefined) m.HEAPU8[p + flag] = 1;
            if (k === 'a' || k >= '0' && k <= '9') {
                const one = [];
                argument(g, k, value, one, null, made, like);
                m.HEAP32[(p + at) >> 2] = one[0];
                continue;
            }
            if (many > 1 && value?.length > many) refuse(`${value.length} numbers of ${name} where ${many} can be`);
            for (let i = 0; i < many; i++) {
                const v = Array.isArray(value) && many > 1 ? value[i] ?? 0 : value;
                if (k[0] === 'd') m.HEAPF64[((p + at) >> 3) + i] = number(v);
                else if (k[0] === 'b') m.HEAPU8[p + at + i] = v ? 1 : 0;
                else if (k[0] === 'l') m.HEAP64[((p + at) >> 3) + i] = big(v);
                else m.HEAP32[((p + at) >> 2) + i] = integer(v);
            }
        }
        return out.push(p);
    }
    default: { // a word
        return out.push(x === undefined ? 0 : wordNumber(words[kind], String(x).replace('Infinity', 'inf')));
    }
    }
}

const classes = { Context, NDArray, Optimizer };
for (const [owner, method, name, result, kinds, options, defaults = {}] of calls) {
    if (method in classes[owner].prototype) continue;
    // Which argument of the call each parameter is: without `this` and results; dtypes come last.
    const first = /^[AlP]/.test(kinds) ? 0 : 1, takes = [...kinds].map((k, i) => ({ k, i })).slice(first).filter(p => p.k !== 'o');
    takes.sort((a, b) => (a.k === 't') - (b.k === 't'));
    const places = [...kinds].map((_, i) => takes.findIndex(t => t.i === i));
    const scalar = kinds === 'aa' ? `_${name}_s` : '';
    classes[owner].prototype[method] = function (...given) {
        const g = owner === 'Context' ? this : this.context, { m } = g;
        if (given.length > takes.length) refuse(`${method}: ${given.length} arguments where there are ${takes.length} at the most`);
        const c = [], made = [], outs = [];
        let value, f = m['_' + name], at;
        // Of which dtype numbers become: that of the array, or of what is chosen by one.
        const like = () => owner !== 'NDArray' ? 'f32' : [name === 'gn_where' ? 0 : this, ...given].find(x => x instanceof NDArray && x.dtype !== 'bool')?.dtype ?? 'bool';
        try {
            g.stacked(() => {
                if (scalar !== '' && typeof given[0] === 'number' && m[scalar] !== undefined) {
                    f = m[scalar];
                    c.push(this.address, given[0]);
                } else {
                    [...kinds].forEach((k, i) => {
                        if (i < first) return c.push(owner === 'Context' ? this.ptr : this.address);
                        const x = given[places[i]] ?? defaults[i];
                        at = places[i] + 1;
                        if (x === undefined && 'dilu'.includes(k)) refuse('it is a number');
                        if (x === undefined && name === 'gn_cast') refuse('it is a dtype');
                        if (k === 'w' && !x) return c.push(0);
                        if (k !== 'o' && k !== 'w') return argument(g, k, x, c, options, made, like);
                        const p = m.stackAlloc(4);
                        m.HEAPU32[p >> 2] = 0;
                        outs.push(p);
                        return c.push(p);
                    });
                }
                at = undefined;
                value = f(...c);
                outs.forEach((p, i) => { outs[i] = m.HEAPU32[p >> 2]; });
                if (kinds[0] === 'P') // what it says about itself
                    for (const [key, [k, from]] of Object.entries(options))
                        if (k === 'd') given[0][key] = m.HEAPF64[(c[0] + from) >> 3];
                        else if (k !== '') given[0][key] = k === 'b' ? m.HEAPU8[c[0] + from] !== 0 : m.HEAP32[(c[0] + from) >> 2];
            });
        } catch (e) {
            if (at !== undefined && !(e instanceof GpunumError))
                e.message = `gpunum: ${method}: argument ${at}: ${e.message.replace(/^gpunum: /, '')}`;
            throw e;
        } finally {
            for (const a of made) a.dispose();
        }
        g.check();
        switch (result) {
        case 'a': return outs.length === 0 ? g.own(value) : [value, ...outs].map(p => g.own(p));
        case 'p': return new Optimizer(g, value);
        case 'l': case 'u': return Number(value);
        case 'U': return BigInt.asUintN(64, value);
        case 'b': return value !== 0;
        case 'z': return m.UTF8ToString(value);
        case 'v': return undefined;
        default: return value;
        }
    };
}
