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
// for what is returned; `using s = g.scope()` does it at the end of the block, but for s.keep(y).

//
// Where the browser has WebGPU, arrays are on the GPU (open's `backend` says otherwise). A page cannot wait for a GPU, so
// that values come as promises: read(), value(), toList() and text() in the place of readSync(), item(), toArray() and
// toString(), which throw there, as does what a GPU does not do (float64, decompositions) with an array that is there: it takes await a.host().

import { calls, words } from './calls.js';

const F32 = 0, F64 = 3, BOOL = 9;
// By gn_dtype: name, typed array, numbers for each element. Float16 and bfloat16 are read as their bits.
const dtypes = [['f32', Float32Array, 1], ['f16', Uint16Array, 1], ['bf16', Uint16Array, 1], ['f64', Float64Array, 1],
    ['i32', Int32Array, 1], ['i64', BigInt64Array, 1], ['u8', Uint8Array, 1], ['i8', Int8Array, 1], ['u32', Uint32Array, 1],
    ['bool', Uint8Array, 1], ['c64', Float32Array, 2], ['c128', Float64Array, 2], ['i16', Int16Array, 1], ['u16', Uint16Array, 1],
    ['u64', BigUint64Array, 1]];
const dtypeNumber = name => {
    const t = dtypes.findIndex(d => d[0] === name);
    if (t < 0) throw new TypeError(`gpunum: no dtype ${name}`);
    return t;
};
const ALL = 1 << 30;

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

const abandoned = new FinalizationRegistry(({ g, ptr }) => g.alive && g.m._gn_release(ptr));

async function load(name, file, more) {
    const { default: create } = await import(name);
    return create({ locateFile: f => new URL(f.endsWith('.wasm') ? file : f, import.meta.url).href, ...more });
}

// Why there is one thread only, or ''.
function whyOneThread() {
    if (globalThis.crossOriginIsolated === false || !globalThis.SharedArrayBuffer) return 'this page is not cross-origin isolated: its server does not send the headers COOP and COEP';
    return '';
}

async function loadThreads(file, threads) {
    let timer;
    const late = new Promise((_, failed) => { timer = setTimeout(() => failed(new Error('workers do not start: is COEP sent with scripts too?')), 20000); });
    const m = await Promise.race([load('./core-threads.mjs', file, { gnWorkers: threads - 1 }), late]).finally(() => clearTimeout(timer)), views = {};
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

async function openGpu(seed, placement, threads) {
    const m = await load('./core-gpu.mjs', 'core-gpu.wasm'), places = ['auto', 'cpu', 'gpu', 'stay'];
    const ptr = await new Promise(done => {
        m.gnOpened = done;
        m._gn_web_open_gpu(seed, places.indexOf(placement));
    });
    if (ptr === 0) throw new GpunumError(m.UTF8ToString(m._gn_open_error()), m._gn_open_status());
    return new Context(m, ptr, false, '', threads === 1 ? '' : 'a context with a GPU has one');
}

// Opens a context. `backend`: 'webgpu', 'cpu', or 'auto': the first where there is a GPU; `placement` of what a context with
// a GPU computes: 'gpu', or 'auto', which leaves small work to the CPU, and where left out the GPU, but for work on a
// thousand numbers at most that are on the CPU; `relaxed`: whether the CPU uses relaxed SIMD, where left out what the engine
// has; `threads` of the CPU, 0 for as many as the machine has: with more than one, workers share the work where the page is
// cross-origin isolated, else device.whyOneThread says why not; `seed` of random numbers.
export async function open({ backend = 'auto', placement, relaxed, threads = 1, seed = 0 } = {}) {
    threads = Math.min(threads || (globalThis.navigator?.hardwareConcurrency ?? 1), 64);
    let why = 'the CPU was asked for';
    if (backend !== 'cpu') {
        why = await whyNoGpu(backend === 'webgpu');
        if (backend === 'webgpu' && why !== '') throw new GpunumError(`open: ${why}`, 8);
        try {
            if (why === '') return await openGpu(seed, placement, threads);
        } catch (e) {
            if (backend === 'webgpu') throw e;
            why = e.message;
        }
    }
    const fast = relaxed ?? WebAssembly.validate(RELAXED), form = fast ? '-relaxed' : '';
    let whyOne = threads > 1 ? whyOneThread() : '', m;
    if (threads > 1 && whyOne === '') m = await loadThreads(`core-threads${form}.wasm`, threads).catch(e => { whyOne = e.message; });
    m ??= await load('./core.mjs', `core${form}.wasm`);
    const ptr = m._gn_web_open(seed, threads);
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
    keep(value) {
        if (value instanceof NDArray) {
            if (this.made.delete(value)) this.#outer()?.made.add(value);
        } else if (Array.isArray(value) || Object.getPrototypeOf(value ?? 0) === Object.prototype) {
            for (const v of Object.values(value)) this.keep(v);
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
        return { arrays: this.m._gn_web_memory(this.ptr, 0), bytes: this.m._gn_web_memory(this.ptr, 1) };
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
        if (data instanceof Uint8ClampedArray) data = new Uint8Array(data.buffer, data.byteOffset, data.length);
        if (ArrayBuffer.isView(data)) {
            t = dtypes.findIndex(d => data instanceof d[1] && d[0] !== 'f16' && d[0] !== 'bf16' && d[0] !== 'bool');
            shape ??= [data.length];
        } else {
            shape ??= shapeOf(data);
            data = Array.isArray(data) ? data.flat(Infinity) : [data];
            if (typeof data[0] === 'boolean') t = BOOL;
        }
        if (t < 0) throw new TypeError('gpunum: no dtype for this kind of typed array');
        const into = dtype === undefined ? t : dtypeNumber(dtype), count = shape.reduce((n, d) => n * d, 1);
        const [, T, each] = dtypes[into], whole = each === 1 || data.length === 2 * count;
        if (!ArrayBuffer.isView(data)) { // complex numbers as pairs, or real ones, which are cast as those for float16 are
            t = whole && T !== Uint16Array || dtype === 'u16' ? into : F64;
            const N = dtypes[t][1];
            data = N.from(data, N === BigInt64Array || N === BigUint64Array ? BigInt : number);
        } else if (whole && T === data.constructor) {
            t = into; // pairs, or the bits of float16
        }
        if (data.length !== count * dtypes[t][2]) throw new GpunumError(`array: ${data.length} numbers do not make (${shape})`, 2);
        const { m, ptr } = this, sp = m.stackSave(), s = this.shape(shape), bytes = this.copied(data);
        const made = m._gn_array_from(ptr, t, s, bytes);
        m.stackRestore(sp);
        m._free(bytes);
        const a = this.own(made);
        if (t === into) return a;
        const b = a.cast(dtype);
        a.dispose();
        return b;
    }
    scalar(value, dtype = 'f32') {
        return this.own(this.m._gn_scalar(this.ptr, dtypeNumber(dtype), Number(value)));
    }
    // From 0 where one number is given.
    arange(start, stop, step = 1, dtype = 'f32') {
        if (stop === undefined) [start, stop] = [0, start];
        return this.own(this.m._gn_arange(this.ptr, dtypeNumber(dtype), start, stop, step));
    }
    eye(n, m = n, k = 0, dtype = 'f32') {
        return this.own(this.m._gn_eye(this.ptr, dtypeNumber(dtype), BigInt(n), BigInt(m), BigInt(k)));
    }
    // Bytes of a .npy file.
    loadNpy(bytes) {
        const { m, ptr } = this, at = this.copied(bytes);
        const a = m._gn_load_npy_memory(ptr, at, bytes.byteLength);
        m._free(at);
        return this.own(a);
    }
    // With a function: runs it, and disposes of what it made but for what it returns. Without: a scope that its `using` ends.
    scope(fn) {
        const s = new Scope(this);
        if (fn === undefined) return s;
        try {
            const value = fn(s);
            if (typeof value?.then === 'function') throw new TypeError('gpunum: a scope by function cannot wait; write `using s = g.scope()`');
            return s.keep(value);
        } finally {
            s.end();
        }
    }
    // Nothing that fn computes is recorded for gradients.
    noGrad(fn) {
        this.m._gn_no_grad_begin(this.ptr);
        try {
            return fn();
        } finally {
            this.m._gn_no_grad_end(this.ptr);
        }
    }
    // d loss / d params[i], without touching grad.
    gradients(loss, params, createGraph = false) {
        const { m } = this, sp = m.stackSave(), at = this.mine(loss), list = this.list(params), out = m.stackAlloc(4 * params.length);
        m._gn_gradients(at, list, params.length, createGraph ? 1 : 0, out);
        const found = params.map((_, i) => m.HEAPU32[(out >> 2) + i]);
        m.stackRestore(sp);
        this.check();
        return found.map(p => this.own(p));
    }

    // ---- for this module
    // Until the GPU has answered something.
    async answer() {
        await Promise.all([...this.m.gnGpu?.futures.values() ?? []].map(f => f.wait));
        if (this.alive) this.m._gn_poll(this.ptr);
    }
    check() {
        const { m, ptr } = this, status = m._gn_status_get(ptr);
        if (status === 0) return;
        const text = m.UTF8ToString(m._gn_error(ptr));
        m._gn_error_clear(ptr);
        throw new GpunumError(text, status);
    }
    // Memory for so many bytes, and bytes in it.
    room(bytes) {
        const p = this.m._malloc(bytes);
        if (p === 0) throw new GpunumError(`out of memory (${bytes} bytes)`, 4);
        return p;
    }
    copied(data) {
        const p = this.room(data.byteLength + 1);
        this.m.HEAPU8.set(new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength), p);
        return p;
    }
    // The address of an array of this context: another one's memory is another.
    mine(a) {
        if (!(a instanceof NDArray)) throw new TypeError(`gpunum: ${typeof a} where an array is asked for`);
        if (a.context !== this) throw new GpunumError('this array belongs to another context', 1);
        return a.at;
    }
    own(ptr) {
        if (ptr === 0) this.check();
        const a = new NDArray(this, ptr);
        this.scopes[this.scopes.length - 1]?.made.add(a);
        return a;
    }
    shape(dims) {
        if (dims.length > 8) throw new GpunumError(`rank ${dims.length} is not in 0..8`, 2);
        const p = this.m.stackAlloc(72);
        this.m.HEAP32[p >> 2] = dims.length;
        dims.forEach((d, i) => { this.m.HEAP64[(p >> 3) + 1 + i] = BigInt(d); });
        return p;
    }
    list(arrays) {
        if (!Array.isArray(arrays)) throw new TypeError('gpunum: a list of arrays is asked for');
        const found = arrays.map(a => this.mine(a)), p = this.m.stackAlloc(4 * arrays.length + 4);
        this.m.HEAPU32.set(found, p >> 2);
        return p;
    }
    axes(x) {
        if (x === undefined || x === null) return ALL;
        if (typeof x === 'number') return x;
        if (Array.isArray(x)) {
            const p = this.m.stackAlloc(4 * x.length + 4);
            x.forEach((v, i) => { this.m.HEAP32[(p >> 2) + i] = v; });
            return this.m._gn_axes_from(x.length, p);
        }
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

function number(v) {
    const n = typeof v === 'object' || v === undefined || v === '' ? NaN : Number(v);
    if (n !== n && typeof v !== 'number') throw new TypeError(`gpunum: ${v === null ? v : typeof v} where a number is asked for`);
    return n;
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

export class NDArray {
    constructor(g, ptr) {
        this.context = g;
        this.ptr = ptr;
        abandoned.register(this, { g, ptr }, this);
    }
    // Its address; one that was disposed of has none.
    get at() {
        if (this.ptr === 0) throw new GpunumError('this array was disposed of, or its scope has ended', 10);
        if (!this.context.alive) throw new GpunumError('the context of this array was closed', 10);
        return this.ptr;
    }
    dispose() {
        if (this.ptr === 0) return;
        abandoned.unregister(this);
        if (this.context.alive) this.context.m._gn_release(this.ptr);
        for (const s of this.context.scopes) s.made.delete(this);
        this.ptr = 0;
    }
    get shape() {
        const m = this.context.m;
        return Array.from({ length: m._gn_rank(this.at) }, (_, i) => Number(m._gn_dim(this.ptr, i)));
    }
    get size() { return Number(this.context.m._gn_size(this.at)); }
    get dtype() { return dtypes[this.context.m._gn_dtype_of(this.at)][0]; }
    // The elements in C order. Complex ones are pairs, float16 and bfloat16 bits, bool bytes.
    async read() {
        const { m } = this.context, n = m._gn_bytes(this.at), p = this.context.room(n + 24), state = (p + n + 7) & ~7, dtype = this.dtype;
        m._gn_web_read(this.ptr, p, n, state);
        m._gn_poll(this.context.ptr);
        while (m.HEAP32[state >> 2] === 0 && this.context.alive) await this.context.answer(); // gn_close calls back
        const status = m.HEAP32[(state >> 2) + 1];
        return this.#taken(p, n, dtype, status);
    }
    // The same without a promise, for backends that need not be waited for.
    readSync() {
        const { m } = this.context, n = m._gn_bytes(this.at), p = this.context.room(n + 8), dtype = this.dtype;
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
    async text() {
        const h = await this.host(), text = String(h);
        h.dispose();
        return text;
    }
    async host() {
        const { shape, dtype, context } = this, data = await this.read();
        return context.array(data, shape, dtype);
    }
    // The one element.
    item() {
        const value = this.context.m._gn_item(this.at);
        this.context.check();
        return value;
    }
    // Overwrites the elements with those of a typed array.
    write(data) {
        const { m } = this.context, { at, dtype } = this, T = dtypes[dtypeNumber(dtype)][1];
        if (!(data instanceof T) && !(T === Uint8Array && data instanceof Uint8ClampedArray))
            throw new TypeError(`gpunum: write: an array of ${dtype} takes ${T.name}`);
        const p = this.context.copied(data);
        m._gn_write(at, p, data.byteLength);
        m._free(p);
        this.context.check();
        return this;
    }
    eval() {
        this.context.m._gn_eval(this.at);
        this.context.check();
        return this;
    }
    requiresGrad(on = true) {
        this.context.m._gn_requires_grad(this.at, on ? 1 : 0);
        this.context.check();
        return this;
    }
    // The gradient, or null.
    get grad() {
        const p = this.context.m._gn_grad(this.at);
        if (p === 0) return null;
        return this.context.own(this.context.m._gn_retain(p));
    }
    // In equal parts along an axis.
    split(sections, axis = 0) {
        const { m } = this.context, { at } = this, sp = m.stackSave(), out = m.stackAlloc(4 * sections);
        m._gn_split(at, sections, axis, out);
        const found = Array.from({ length: sections }, (_, i) => m.HEAPU32[(out >> 2) + i]);
        m.stackRestore(sp);
        this.context.check();
        return found.map(p => this.context.own(p));
    }
    saveNpy() {
        const { m } = this.context, n = m._gn_save_npy_memory(this.at, 0, 0), p = this.context.room(n + 1);
        m._gn_save_npy_memory(this.ptr, p, n);
        const copy = m.HEAPU8.slice(p, p + n);
        m._free(p);
        this.context.check();
        return copy;
    }
    toString() {
        const { m } = this.context, p = m._gn_to_string(this.at, 0);
        if (p === 0) this.context.check();
        const text = m.UTF8ToString(p);
        m._gn_string_free(this.context.ptr, p);
        return text;
    }
}

export class Optimizer {
    constructor(g, ptr) {
        this.context = g;
        this.ptr = ptr;
    }
    get at() {
        if (this.ptr === 0 || !this.context.alive) throw new GpunumError('this optimizer was disposed of, or its context closed', 10);
        return this.ptr;
    }
    get lr() { return this.context.m._gn_lr_get(this.at); }
    set lr(value) {
        this.context.m._gn_lr_set(this.at, value);
        this.context.check();
    }
    dispose() {
        if (this.ptr !== 0 && this.context.alive) this.context.m._gn_optimizer_free(this.ptr);
        this.ptr = 0;
    }
}

if (Symbol.dispose) {
    Scope.prototype[Symbol.dispose] = Scope.prototype.end;
    for (const c of [NDArray, Optimizer]) c.prototype[Symbol.dispose] = c.prototype.dispose;
    Context.prototype[Symbol.dispose] = Context.prototype.close;
}

// ---- the methods that only hand their arguments on

// What stands for one argument in C, or for two: a list and its count.
function argument(g, kind, x, out, options, made, like) {
    const { m } = g;
    switch (kind) {
    case 'k':
        like = 'i32'; // falls through
    case 'a': {
        if (x === undefined || x === null) return out.push(0); // an operand that may be left out; gpunum says where it may not
        if (!(x instanceof NDArray)) { // whole numbers beside integers are some, others are floats that hold them
            const list = Array.isArray(x), all = [x].flat(list ? Infinity : 0), integers = /^[iu]/.test(like), whole = all.every(v => Number.isInteger(Number(v)));
            const t = list && typeof all[0] === 'boolean' ? 'bool' : like === 'f64' || like === 'c128' ? 'f64' : !integers || !whole ? 'f32' :
                like === 'u64' && all.every(v => v >= 0) ? like : /64/.test(like) ? 'i64' : 'i32';
            if (typeof x === 'bigint') x = g.array([x], [], integers ? like : 'i64');
            else if (ArrayBuffer.isView(x)) x = g.array(x);
            else x = list ? g.array(x, undefined, t) : g.scalar(number(x), like === 'bool' || integers && !whole ? 'f32' : like);
            made.push(x);
        }
        return out.push(g.mine(x));
    }
    case 's': return out.push(g.shape(typeof x === 'number' ? [x] : x ?? []));
    case 't': return out.push(dtypeNumber(x ?? 'f32'));
    case 'x': return out.push(g.axes(x));
    case 'y': return out.push(x === undefined ? -1 : g.axes(x));
    case 'i': return out.push(number(x));
    case 'j': return out.push(x ?? -1);
    case 'l': case 'u': return out.push(BigInt(x));
    case 'd': return out.push(number(x));
    case 'b': return out.push(x ? 1 : 0);
    case 'z': return out.push(m.stringToUTF8OnStack(String(x)));
    case 'A': return out.push(g.list(x), x.length);
    case 'I': case 'N': {
        const p = m.stackAlloc(8 * x.length + 8) + 7 & ~7;
        x.forEach((v, i) => { if (kind === 'I') m.HEAP32[(p >> 2) + i] = v; else m.HEAP64[(p >> 3) + i] = BigInt(v); });
        return out.push(p, x.length);
    }
    case 'O': {
        if (x === undefined) return out.push(0);
        const p = m.stackAlloc(options.size[1] + 8) + 7 & ~7;
        m.HEAPU8.fill(0, p, p + options.size[1]);
        for (const [name, value] of Object.entries(x)) {
            if (options[name] === undefined || name === 'size') throw new TypeError(`gpunum: no option ${name}`);
            const [k, at] = options[name], many = Number(k.slice(1) || 1); // of a list one number stands for all
            for (let i = 0; i < many; i++) {
                const v = Array.isArray(value) ? value[i] ?? 0 : value;
                if (k[0] === 'd') m.HEAPF64[((p + at) >> 3) + i] = v;
                else if (k[0] === 'b') m.HEAPU8[p + at + i] = v ? 1 : 0;
                else if (k[0] === 'l') m.HEAP64[((p + at) >> 3) + i] = BigInt(v);
                else m.HEAP32[((p + at) >> 2) + i] = v;
            }
        }
        return out.push(p);
    }
    default: { // a word
        const at = x === undefined ? 0 : words[kind].indexOf(String(x).replace('Infinity', 'inf'));
        if (at < 0) throw new TypeError(`gpunum: '${x}' is none of ${words[kind].join(', ')}`);
        return out.push(at);
    }
    }
}

const classes = { Context, NDArray, Optimizer };
for (const [owner, method, name, result, kinds, options, defaults = {}] of calls) {
    if (method in classes[owner].prototype) continue;
    // Which argument of the call each parameter is: without `this` and results; of a context's functions dtypes come last.
    const first = kinds[0] === 'A' ? 0 : 1, takes = [...kinds].map((k, i) => ({ k, i })).slice(first).filter(p => p.k !== 'o');
    if (owner === 'Context') takes.sort((a, b) => (a.k === 't') - (b.k === 't'));
    const places = [...kinds].map((_, i) => takes.findIndex(t => t.i === i));
    const scalar = kinds === 'aa' ? `_${name}_s` : '';
    classes[owner].prototype[method] = function (...given) {
        const g = owner === 'Context' ? this : this.context, { m } = g;
        const sp = m.stackSave(), c = [], made = [], outs = [];
        let value, f = m['_' + name];
        try {
            if (scalar !== '' && typeof given[0] === 'number' && m[scalar] !== undefined) {
                f = m[scalar];
                c.push(this.at, given[0]);
            } else {
                [...kinds].forEach((k, i) => {
                    if (i < first) return c.push(owner === 'Context' ? this.ptr : this.at);
                    const x = given[places[i]] ?? defaults[i];
                    if (x === undefined && 'dilu'.includes(k)) throw new TypeError(`gpunum: ${method}: argument ${places[i] + 1} is a number`);
                    if (k !== 'o') return argument(g, k, x, c, options, made, owner === 'NDArray' ? this.dtype : 'f32');
                    const p = m.stackAlloc(4);
                    m.HEAPU32[p >> 2] = 0;
                    outs.push(p);
                    return c.push(p);
                });
            }
            value = f(...c);
            outs.forEach((p, i) => { outs[i] = m.HEAPU32[p >> 2]; });
        } finally {
            m.stackRestore(sp);
            for (const a of made) a.dispose();
        }
        g.check();
        switch (result) {
        case 'a': return outs.length === 0 ? g.own(value) : [value, ...outs].map(p => g.own(p));
        case 'p': return new Optimizer(g, value);
        case 'l': case 'u': return Number(value);
        case 'b': return value !== 0;
        case 'z': return m.UTF8ToString(value);
        case 'v': return undefined;
        default: return value;
        }
    };
}
