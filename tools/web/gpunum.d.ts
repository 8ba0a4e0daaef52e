/// <reference lib="esnext.disposable" />
// Types of gpunum.js; README.md beside it says how it is used. Methods are the functions of gpunum.h, in its words: gn_log_softmax
// is a.logSoftmax, `a` the array itself, and 0 of an option what it is where it is left out. An axis that is left out is the last one, of concat, stack, shuffle, split and unstack
// the first; axes are all. Where functions of C give more arrays than one, methods give a list: const [values, indices] = a.topk(3).

export type Dtype = 'f32' | 'f16' | 'bf16' | 'f64' | 'i32' | 'i64' | 'u8' | 'i8' | 'u32' | 'bool' | 'c64' | 'c128' | 'i16' | 'u16' | 'u64';
export type Shape = number[];
/** One axis, several, all (left out), or any of these kept with size 1. */
export type Axes = number | number[] | { keep: Axes } | null | undefined;
export type TypedArray = Float32Array | Float64Array | Int32Array | Uint32Array | Int16Array | Uint16Array | Int8Array | Uint8Array
    | Uint8ClampedArray | BigInt64Array | BigUint64Array;
export type Numbers = number | bigint | boolean | Numbers[];
export type Operand = NDArray | Numbers | TypedArray;

export interface Options {
    /** Relaxed SIMD; left out: where the engine has it. */
    relaxed?: boolean;
    /** 'webgpu', 'cpu', or (left out) 'auto': the first where the browser has a GPU. */
    backend?: 'auto' | 'webgpu' | 'cpu';
    /** Of a context with a GPU: 'gpu', or 'auto', which leaves small work to the CPU. Left out: the GPU, but for a thousand
        numbers at most that are on the CPU. */
    placement?: 'auto' | 'cpu' | 'gpu' | 'stay';
    /** Of the CPU; 0: as many as the machine has; left out: 1. More than one need a page that is cross-origin isolated, or node. */
    threads?: number;
    seed?: number | bigint;
    /** What the console is told: errors, warnings and so on up to this; left out: nothing. */
    log?: 'error' | 'warning' | 'info' | 'debug';
    /** Where the package's files are served, as '/gpunum/', if a bundler took gpunum.js from beside them: wanted for threads. */
    folder?: string | URL;
}
/** How arrays are written; left out: NumPy's way. */
export interface Printing {
    /** Digits behind the point, 8. */
    precision?: number;
    /** Elements from which on the middle is left out, 1000, and how many stay at each edge, 3. */
    threshold?: number;
    edgeItems?: number;
    lineWidth?: number;
}
/** Of lrPlateau, which changes it: all that there is to be saved. Left out: factor .1, patience 10, threshold 1e-4. */
export interface Plateau {
    lr: number;
    factor?: number;
    threshold?: number;
    least?: number;
    patience?: number;
    cooldown?: number;
    /** More is better. */
    rises?: boolean;
    begun?: boolean;
    best?: number;
    bad?: number;
    resting?: number;
}
export type Bytes = ArrayBuffer | ArrayBufferView;
export function open(options?: Options): Promise<Context>;

export class GpunumError extends Error {
    /** 1 GN_ERROR_ARGUMENT, 2 _SHAPE, 3 _DTYPE, 4 _OUT_OF_MEMORY, 5 _DEVICE_LOST, 6 _IO, 7 _FORMAT, 8 _UNSUPPORTED, 9 _GRADIENT,
        10 _STALE (it was disposed of or closed), 11 _VERSION. */
    readonly status: number;
}

export interface Scope extends Disposable {
    /** Leaves arrays, also those in lists and objects, to the scope around this one. */
    keep<T>(value: T): T;
    end(): void;
}

export class Context implements Disposable {
    /** `why` there is no GPU, and why there is one thread where more were asked for; both may be ''. */
    readonly device: { backend: 'cpu' | 'webgpu'; relaxed: boolean; threads: number; name: string; why: string; whyOneThread: string };
    /** Arrays alive, and bytes in the CPU's and the GPU's memory. */
    readonly memory: { arrays: number; bytes: number; gpuBytes: number };
    /** When all work so far is done. */
    sync(): Promise<void>;
    close(): void;
    [Symbol.dispose](): void;
    array(data: Numbers | TypedArray, shape?: Shape | number, dtype?: Dtype): NDArray;
    scalar(value: number, dtype?: Dtype): NDArray;
    /** A bigint for i64 and u64 keeps all of its digits; a complex number is a pair. */
    full(shape: Shape | number, value: number | bigint | boolean | [number, number], dtype?: Dtype): NDArray;
    arange(stop: number): NDArray;
    arange(start: number, stop?: number, step?: number, dtype?: Dtype): NDArray;
    eye(n: number, m?: number, k?: number, dtype?: Dtype): NDArray;
    /** NumPy's name, such as "float32". */
    dtypeName(dtype: Dtype): string;
    /** Bytes of an element. */
    dtypeSize(dtype: Dtype): number;
    /** What two dtypes become together; null: nothing. */
    promote(a: Dtype, b: Dtype): Dtype | null;
    /** Coordinates, one for each array, which runs along axis 0 (`ij`) or along axis 1 (left out, as NumPy's 'xy'). */
    meshgrid(arrays: NDArray[], ij?: boolean): NDArray[];
    /** Several at once, sharing common work. */
    evalAll(arrays: NDArray[]): void;
    /** averages[i] becomes decay averages[i] + (1 - decay) params[i]. */
    emaUpdate(averages: NDArray[], params: NDArray[], decay: number): void;
    loadNpy(bytes: Bytes): NDArray;
    /** One array of an .npz file, or all by their names. */
    loadNpz(bytes: Bytes, name: string): NDArray;
    loadNpz(bytes: Bytes): Record<string, NDArray>;
    saveNpz(arrays: Record<string, NDArray>): Uint8Array;
    /** Text or its bytes; skipLines: names at the top. */
    loadCsv(text: string | Bytes, skipLines?: number, delimiter?: string, dtype?: Dtype): NDArray;
    /** MNIST's format. */
    loadIdx(bytes: Bytes): NDArray;
    /** Everything that is in a safetensors file. */
    loadSafetensors(bytes: Bytes): Params;
    /** Named arrays: the parameters of a model, to be saved and loaded. */
    params(arrays?: Record<string, NDArray>): Params;
    /** Deals the rows of arrays, which are copied, out in batches; batch left out: 1. */
    loader(arrays: NDArray[], options?: { batch?: number; shuffle?: boolean; dropLast?: boolean; seed?: number | bigint }): Loader;
    /** Disposes of what fn made, but for the arrays in what it returns. */
    scope<T>(fn: (scope: Scope) => T): T;
    scope(): Scope;
    noGrad<T>(fn: () => T): T;
    /** Products, convolutions and attention that fn computes are in halves, 'bf16' or 'f16'. */
    autocast<T>(dtype: Dtype, fn: () => T): T;
    /** forward(...inputs) with a derivative of its own: backward gets the gradient gy of the result y and gives that of each
        input, null for one that needs none. What they make is disposed of but for what they return. */
    custom(forward: (...inputs: NDArray[]) => NDArray,
        backward: (gy: NDArray, y: NDArray, ...inputs: NDArray[]) => NDArray | (NDArray | null)[] | null, inputs: NDArray[]): NDArray;
    /** fn(...inputs), computed again for its gradient instead of kept. */
    checkpoint(fn: (...inputs: NDArray[]) => NDArray, inputs: NDArray[]): NDArray;
    /** The largest error of the gradients of fn, which gives one element, beside differences of its values; step left out: by
        the dtype. Not on a GPU. */
    gradcheck(fn: (...inputs: NDArray[]) => NDArray, inputs: NDArray[], step?: number): number;
    gradients(loss: NDArray, params: NDArray[], createGraph?: boolean): NDArray[];
    // @methods of Context
}

export class NDArray implements Disposable {
    readonly context: Context;
    readonly shape: Shape;
    readonly size: number;
    readonly bytes: number;
    readonly dtype: Dtype;
    readonly grad: NDArray | null;
    dispose(): void;
    [Symbol.dispose](): void;
    /** The elements in C order; complex ones as pairs, float16 and bfloat16 as bits, bool as bytes: read<Float32Array>(). */
    read<T extends TypedArray = TypedArray>(): Promise<T>;
    toList(): Promise<any>;
    value(): Promise<number>;
    text(options?: Printing): Promise<string>;
    /** An equal array in the CPU's memory, for what a GPU does not do. */
    host(): Promise<NDArray>;
    /** These three, and toString(), throw where the array is on a GPU. */
    readSync<T extends TypedArray = TypedArray>(): T;
    toArray(): any;
    item(): number;
    /** Of integers, exactly. */
    itemInt(): bigint;
    /** Of the kind that read() gives. */
    write(data: TypedArray): this;
    eval(): this;
    requiresGrad(on?: boolean): this;
    /** A copy of the data to where it will be used; gives this array. */
    to(device: 'cpu' | 'gpu'): this;
    /** Equal parts. */
    split(sections: number, axis?: number): NDArray[];
    /** Parts of which the first are longer by one where they cannot be equal. */
    arraySplit(sections: number, axis?: number): NDArray[];
    /** Cut in front of these places. */
    splitAt(places: number[], axis?: number): NDArray[];
    /** Parts without that axis. */
    unstack(axis?: number): NDArray[];
    /** Sums over so many axes, the last ones with b's first ones, left out 2, or over axes with axes of b. */
    tensordot(b: NDArray, axes?: number | [number | number[], number | number[]]): NDArray;
    /** Left out: all axes, with lengths alone the last ones. */
    fftn(n?: number[] | null, axes?: number[] | null, norm?: 'backward' | 'ortho' | 'forward'): NDArray;
    ifftn(n?: number[] | null, axes?: number[] | null, norm?: 'backward' | 'ortho' | 'forward'): NDArray;
    rfftn(n?: number[] | null, axes?: number[] | null, norm?: 'backward' | 'ortho' | 'forward'): NDArray;
    irfftn(n?: number[] | null, axes?: number[] | null, norm?: 'backward' | 'ortho' | 'forward'): NDArray;
    /** (x - mean[c]) / deviation[c] of images (n, c, h, w); uint8 is divided by 255 before. */
    normalize(mean: number[], deviation: number[]): NDArray;
    /** Bytes of a .npy file. */
    saveNpy(): Uint8Array;
    /** Text of a CSV file; header: its first line. */
    saveCsv(header?: string, delimiter?: string): string;
    toString(options?: Printing): string;
    // @methods of NDArray
}

/** Of these three the garbage collector frees what nobody holds. */
export class Optimizer implements Disposable {
    lr: number;
    dispose(): void;
    /** States, rate and steps as params.addOptimizer(name, ...) put them there. */
    restore(params: Params, name: string): void;
    [Symbol.dispose](): void;
    // @methods of Optimizer
}

/** Named arrays in their order, as in a safetensors file: for (const [name, a] of params). */
export class Params implements Disposable, Iterable<[string, NDArray]> {
    readonly count: number;
    readonly names: string[];
    dispose(): void;
    [Symbol.dispose](): void;
    [Symbol.iterator](): Iterator<[string, NDArray]>;
    add(name: string, a: NDArray): this;
    /** null: there is none of that name. */
    get(name: string): NDArray | null;
    /** Text by a key, which goes into the file as well. */
    note(key: string, text: string): this;
    noted(key: string): string | null;
    /** Bytes of a safetensors file. Where arrays are on a GPU: (await params.host()).save(). */
    save(): Uint8Array;
    /** A file's arrays over these: names and shapes must be the same, or nothing is written. */
    load(bytes: Bytes): this;
    /** The same of names that are in both; which these lack, and which of the file nobody took. */
    loadMatching(bytes: Bytes): { missing: string[]; unused: string[] };
    /** Its states, and its rate and steps as they are: once more before each save. */
    addOptimizer(name: string, optimizer: Optimizer): this;
    /** An equal list in the CPU's memory. */
    host(): Promise<Params>;
}

/** The batches of an epoch: for (const [x, y] of loader), which are disposed of when the next one comes. */
export class Loader implements Disposable, Iterable<NDArray[]> {
    /** Of an epoch. */
    readonly batches: number;
    dispose(): void;
    [Symbol.dispose](): void;
    [Symbol.iterator](): Iterator<NDArray[]>;
    /** The next batch, which is yours; null at the end of an epoch, behind which another begins. */
    next(): NDArray[] | null;
    /** Goes on with that batch of that epoch, both from 0 on. */
    seek(epoch: number, batch?: number): void;
}
