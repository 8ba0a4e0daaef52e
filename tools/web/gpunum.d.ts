// Types of gpunum.js. The methods without words are those of gpunum.h, which documents them. An axis that is left out is the
// last one, of concat, stack, shuffle and split the first; axes are all.

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
    seed?: number;
}
export function open(options?: Options): Promise<Context>;

export class GpunumError extends Error {
    /** A gn_status. */
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
    readonly memory: { arrays: number; bytes: number };
    /** When all work so far is done. */
    sync(): Promise<void>;
    close(): void;
    [Symbol.dispose](): void;
    array(data: Numbers | TypedArray, shape?: Shape, dtype?: Dtype): NDArray;
    scalar(value: number, dtype?: Dtype): NDArray;
    arange(stop: number): NDArray;
    arange(start: number, stop?: number, step?: number, dtype?: Dtype): NDArray;
    eye(n: number, m?: number, k?: number, dtype?: Dtype): NDArray;
    loadNpy(bytes: ArrayBuffer | Uint8Array): NDArray;
    /** Disposes of what fn made, but for the arrays in what it returns. */
    scope<T>(fn: (scope: Scope) => T): T;
    scope(): Scope;
    noGrad<T>(fn: () => T): T;
    gradients(loss: NDArray, params: NDArray[], createGraph?: boolean): NDArray[];
    // @methods of Context
}

export class NDArray implements Disposable {
    readonly context: Context;
    readonly shape: Shape;
    readonly size: number;
    readonly dtype: Dtype;
    readonly grad: NDArray | null;
    dispose(): void;
    [Symbol.dispose](): void;
    /** The elements in C order; complex ones as pairs, float16 and bfloat16 as bits, bool as bytes. */
    read(): Promise<TypedArray>;
    toList(): Promise<any>;
    value(): Promise<number>;
    text(): Promise<string>;
    /** An equal array in the CPU's memory, for what a GPU does not do. */
    host(): Promise<NDArray>;
    /** These three, and toString(), throw where the array is on a GPU. */
    readSync(): TypedArray;
    toArray(): any;
    item(): number;
    /** Of the kind that read() gives. */
    write(data: TypedArray): this;
    eval(): this;
    requiresGrad(on?: boolean): this;
    split(sections: number, axis?: number): NDArray[];
    saveNpy(): Uint8Array;
    toString(): string;
    // @methods of NDArray
}

export class Optimizer implements Disposable {
    lr: number;
    dispose(): void;
    [Symbol.dispose](): void;
    // @methods of Optimizer
}
