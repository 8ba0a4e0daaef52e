// gpunum.js in node's own test runner: node --test tests/web/test_gpunum.mjs, after tools/web/build.sh. GN_PACKAGE names
// another folder than build/npm.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { inspect } from 'node:util';
import zlib from 'node:zlib';

const where = process.env.GN_PACKAGE ?? new URL('../../build/npm', import.meta.url).pathname;
const all = await import(where + '/gpunum.js'), { open, GpunumError, NDArray } = all, { calls } = await import(where + '/calls.js');

// Numbers, or lists of lists of them, that differ by no more than what float32 leaves of sums of a few.
function near(found, expected, most = 2e-6) {
    const [a, b] = [found, expected].map(x => [x].flat(Infinity));
    assert.equal(a.length, b.length);
    a.forEach((v, i) => assert.ok(Math.abs(v - b[i]) <= most * Math.max(1, Math.abs(b[i])), `${i}: ${v}, not ${b[i]}`));
}
const utf8 = text => new TextEncoder().encode(text);

// A file of safetensors as its page describes it: https://huggingface.co/docs/safetensors. Of {name: [dtype, shape, typed array]}.
function safetensors(arrays, notes) {
    const header = notes ? { __metadata__: notes } : {}, parts = [];
    let at = 0;
    for (const [name, [dtype, shape, data]] of Object.entries(arrays)) {
        header[name] = { dtype, shape, data_offsets: [at, at += data.byteLength] };
        parts.push(new Uint8Array(data.buffer));
    }
    const text = utf8(JSON.stringify(header)), n = new DataView(new ArrayBuffer(8));
    n.setBigUint64(0, BigInt(text.length), true);
    return new Uint8Array(Buffer.concat([new Uint8Array(n.buffer), text, ...parts]));
}
function fromSafetensors(bytes) {
    const n = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true)), header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + n)));
    return [header, ([from, to], T = Float32Array) => new T(bytes.slice(8 + n + from, 8 + n + to).buffer)];
}

// A .npy file of float32, and an archive of files, deflated.
function npy(shape, data) {
    const dict = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.map(d => d + ',').join(' ')}), }`, head = dict.padEnd(117) + '\n';
    return Buffer.concat([Buffer.from('\x93NUMPY\x01\x00', 'latin1'), Buffer.from([head.length, 0]), utf8(head), new Uint8Array(data.buffer)]);
}
function zip(files) {
    const parts = [], directory = [];
    let at = 0;
    for (const [name, data] of Object.entries(files)) {
        const packed = zlib.deflateRawSync(data), fields = Buffer.alloc(26);
        [20, 0, 8, 0, 0].forEach((v, i) => fields.writeUInt16LE(v, 2 * i));
        fields.writeUInt32LE(zlib.crc32(data), 10);
        fields.writeUInt32LE(packed.length, 14);
        fields.writeUInt32LE(data.length, 18);
        fields.writeUInt16LE(name.length, 22);
        parts.push(Buffer.from('PK\x03\x04', 'latin1'), fields, utf8(name), packed);
        const end = Buffer.alloc(14);
        end.writeUInt32LE(at, 10);
        directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), fields, end, utf8(name));
        at += 30 + name.length + packed.length;
    }
    const list = Buffer.concat(directory), end = Buffer.alloc(22);
    end.write('PK\x05\x06', 'latin1');
    end.writeUInt16LE(parts.length / 4, 8);
    end.writeUInt16LE(parts.length / 4, 10);
    end.writeUInt32LE(list.length, 12);
    end.writeUInt32LE(at, 16);
    return Buffer.concat([...parts, list, end]);
}

test('every function of gpunum.h is here, or it is written why not', () => {
    const folder = new URL('../../tools/gpunum/api/', import.meta.url), lists = readFileSync(new URL('../../tools/web/by_hand.txt', import.meta.url), 'utf8');
    const functions = new Set(readdirSync(folder).flatMap(f => [...readFileSync(new URL(f, folder), 'utf8').replace(/^#define.*|\/\/.*/gm, '')
        .matchAll(/GPUNUM_API[^;(]*?(gn_\w+)\(/g)].map(m => m[1])));
    assert.ok(functions.size > 470 && functions.has('gn_add') && functions.has('gn_lr_plateau'), `${functions.size} functions`);
    const has = (owner, member) => owner in all && (member === undefined || [all[owner].prototype, all[owner]].some(o => member in o));
    const handed = calls.map(([owner, method, f]) => (assert.ok(has(owner, method), method), f)), here = new Set(handed);
    for (const f of handed) if (functions.has(f + '_s')) here.add(f + '_s');
    const left = new Map();
    for (const [, names, members, why] of lists.matchAll(/^(gn_[\w ]+?) (?:= ([\w. ]+)|: (.+))$/gm))
        for (const f of names.split(' ')) {
            assert.ok(functions.has(f), `${f} is in by_hand.txt and not in gpunum.h`);
            assert.ok(!here.has(f), `${f} is in by_hand.txt and in calls.js`);
            for (const m of members?.split(' ') ?? []) assert.ok(has(...m.split('.')) || m === 'NDArray.context', `${f} is not ${m}`);
            here.add(f);
            if (why) left.set(f, why);
        }
    assert.deepEqual([...functions].filter(f => !here.has(f)), []);
    assert.ok(left.size < 30, `${left.size} are left out`);
});

for (const [relaxed, threads] of [[false, 1], [true, 1], [false, 3], [true, 3]]) {
    const g = await open({ relaxed, threads, seed: 7 });
    const it = (name, fn) => test(`${relaxed ? 'relaxed' : 'simd'}, ${threads} threads: ${name}`, async () => {
        const before = g.memory.arrays;
        {
            const s = g.scope();
            try {
                await fn(s);
            } finally {
                s.end();
            }
        }
        assert.equal(g.memory.arrays, before, 'arrays are left');
    });

    it('says where it computes', () => {
        assert.equal(g.device.backend, 'cpu');
        assert.equal(g.device.relaxed, relaxed);
        assert.match(g.device.name, /WebAssembly SIMD128/);
        assert.ok(g.device.why.length > 0);
        assert.equal(g.device.threads, threads);
        assert.equal(g.device.whyOneThread, '');
    });
    it('computes the same bits with threads', async () => {
        if (threads === 1) return;
        const other = await open({ relaxed, seed: 8 }), both = [g, other].map(c => c.scope(() => {
            c.seed(3);
            const x = c.randn([300, 300]), y = x.matmul(x).sort(1);
            return y.sin().mul(x).add(y.softmax(1)).readSync();
        }));
        assert.deepEqual(new Uint8Array(both[0].buffer), new Uint8Array(both[1].buffer));
        other.close();
        g.m.wasmMemory.grow(1); // as a worker does
        assert.equal(g.m.HEAPU8.length, g.m.wasmMemory.buffer.byteLength);
    });
    it('has one thread where memory cannot be shared, and says so', async () => {
        globalThis.crossOriginIsolated = false; // as in a page without the headers
        const opening = open({ backend: 'cpu', relaxed, threads: 4 });
        delete globalThis.crossOriginIsolated; // other contexts are being opened
        const other = await opening;
        assert.equal(other.device.threads, 1);
        assert.match(other.device.whyOneThread, /not cross-origin isolated/);
        other.close();
    });
    it('opens no GPU where there is none', async () => {
        await assert.rejects(open({ backend: 'webgpu' }), e => e instanceof GpunumError && e.status === 8 && /has no WebGPU/.test(e.message));
        const other = await open({ backend: 'cpu' });
        assert.equal(other.device.why, 'the CPU was asked for');
        other.close();
    });
    it('gives values as promises', async () => {
        const a = g.arange(0, 6).reshape([2, 3]);
        assert.deepEqual(await a.toList(), [[0, 1, 2], [3, 4, 5]]);
        assert.equal(await a.sum().value(), 15);
        assert.equal(await a.text(), String(a));
        assert.deepEqual((await a.cast('f16').host()).cast('f32').toArray(), a.toArray());
        assert.deepEqual(await g.array([1, 2, 3, 4], [2], 'c64').toList(), [[1, 2], [3, 4]]);
        await assert.rejects(a.value(), GpunumError);
        await g.sync();
        const [x, y] = await Promise.all([a.add(1).read(), a.mul(2).read()]);
        assert.deepEqual([x[5], y[5]], [6, 10]);
    });
    it('takes and gives typed arrays of every dtype', async () => {
        for (const [dtype, T] of [['f32', Float32Array], ['f64', Float64Array], ['i32', Int32Array], ['u32', Uint32Array],
            ['i16', Int16Array], ['u16', Uint16Array], ['i8', Int8Array], ['u8', Uint8Array]]) {
            const a = g.array(T.from([1, 2, 3, 4, 5, 6]), [2, 3]);
            assert.equal(a.dtype, dtype);
            assert.deepEqual(a.shape, [2, 3]);
            assert.deepEqual(await a.read(), T.from([1, 2, 3, 4, 5, 6]));
        }
        const long = g.array(BigInt64Array.from([1n, -(2n ** 62n)]));
        assert.equal(long.dtype, 'i64');
        assert.deepEqual(long.readSync(), BigInt64Array.from([1n, -(2n ** 62n)]));
        assert.deepEqual(g.array([1, 2.5], undefined, 'f16').cast('f32').toArray(), [1, 2.5]);
        assert.deepEqual(g.array([1, 2, 3, 4], [2], 'c64').toArray(), [[1, 2], [3, 4]]);
        assert.deepEqual(g.array([1, 2], [2], 'c64').toArray(), [[1, 0], [2, 0]]);
        assert.deepEqual(g.array(Uint8Array.from([1, 0]), [2], 'bool').toArray(), [1, 0]);
        assert.deepEqual(g.array([[1, 2], [3, 4]]).transpose().toArray(), [[1, 3], [2, 4]]);
        assert.deepEqual(g.array([true, false]).dtype, 'bool');
        assert.deepEqual(g.array(3).shape, []);
        assert.deepEqual(g.array(new Float32Array(0)).toArray(), []);
    });
    it('computes with operators, numbers and lists', () => {
        const a = g.arange(0, 4);
        assert.deepEqual(a.add(1).mul(a).toArray(), [0, 2, 6, 12]);
        assert.deepEqual(a.add([10, 20, 30, 40]).toArray(), [10, 21, 32, 43]);
        assert.deepEqual(a.rsub(1).toArray(), [1, 0, -1, -2]);
        assert.deepEqual(a.gt(1).where(a, 0).toArray(), [0, 0, 2, 3]);
        assert.deepEqual(a.clamp(1, 2).toArray(), [1, 1, 2, 2]);
        assert.equal(a.sum().item(), 6);
        assert.equal(g.scalar(2, 'f64').dtype, 'f64');
        assert.deepEqual(g.ones([2, 3], 'i32').dtype, 'i32');
    });
    it('reduces over axes', () => {
        const a = g.arange(0, 24).reshape([2, 3, 4]);
        assert.deepEqual(a.sum(0).shape, [3, 4]);
        assert.deepEqual(a.sum([0, 2]).toArray(), [60, 92, 124]);
        assert.deepEqual(a.mean({ keep: [0, -1] }).shape, [1, 3, 1]);
        assert.deepEqual(a.max({ keep: null }).shape, [1, 1, 1]);
        assert.equal(a.argmax().item(), 23);
        assert.deepEqual(a.softmax().sum(-1).shape, [2, 3]);
        assert.deepEqual(a.index('1, ::-2, 0').toArray(), [20, 12]);
        assert.equal(a.at(1).at(-1).at(0).item(), 20);
        assert.throws(() => a.at(2), /at: index 2 is out of bounds for axis 0 with size 2/);
        assert.deepEqual(a.sort(undefined, true).index('0, 0').toArray(), [3, 2, 1, 0]);
    });
    it('multiplies, transforms and decomposes', () => {
        const a = g.array([[2, 1], [1, 3]], undefined, 'f64');
        const [w, v] = a.eigh();
        const near = a.matmul(v).sub(v.mul(w)).abs().max().item();
        assert.ok(near < 1e-14, String(near));
        assert.deepEqual(g.einsum('ij,jk->ik', [a, a]).toArray(), a.matmul(a).toArray());
        assert.deepEqual(g.concat([a, a], 0).shape, [4, 2]);
        assert.deepEqual(g.stack([a, a], 0).shape, [2, 2, 2]);
        assert.deepEqual(a.fft().ifft().real().toArray(), a.toArray());
        assert.equal(a.svd(false).length, 3);
        const x = g.randn([3, 64]), y = x.fft(64, -1, 'ortho').ifft(64, -1, 'ortho').real();
        assert.ok(y.sub(x).abs().max().item() < 1e-5);
        assert.deepEqual(g.arange(0, 6).split(3).map(p => p.toArray()), [[0, 1], [2, 3], [4, 5]]);
    });
    it('differentiates and trains', () => {
        const x = g.array([1, 2, 3]).requiresGrad(), loss = x.square().sum();
        loss.backward();
        assert.deepEqual(x.grad.toArray(), [2, 4, 6]);
        x.zeroGrad();
        assert.deepEqual(g.gradients(x.pow(3).sum(), [x])[0].toArray(), [3, 12, 27]);
        assert.equal(g.noGrad(() => x.mul(2)).needsGrad(), false);
        const w = g.zeros([4]).requiresGrad(), goal = g.array([1, -2, 3, 0.5]), opt = g.adam([w], { lr: 0.1 });
        assert.equal(opt.lr, 0.1);
        let last = 0;
        for (let i = 0; i < 300; i++)
            last = g.scope(() => {
                const l = w.mseLoss(goal);
                opt.zeroGrads();
                l.backward();
                opt.step();
                return l.item();
            });
        assert.ok(last < 1e-3, String(last));
        opt.lr = 0.5;
        assert.equal(opt.lr, 0.5);
        assert.throws(() => g.adam([w], { rate: 1 }), /no option rate/);
        opt.dispose();
        const image = g.ones([1, 1, 4, 5]), kernel = g.ones([2, 1, 3, 3]);
        assert.deepEqual(image.conv2d(kernel, undefined, { pads: [1, 0] }).shape, [1, 2, 4, 3]);
        assert.throws(() => image.conv2d(kernel, undefined, { pads: [1, 0, 2, 1] }), /4 numbers of pads where 3 can be/);
        assert.deepEqual(image.conv2d(kernel, null, null).shape, [1, 2, 2, 3]);
        assert.deepEqual(image.conv2d(kernel, null, { stride: 2, pad: 1 }).toArray()[0][0], [[4, 6, 4], [6, 9, 6]]);
    });
    it('disposes of what a scope made', () => {
        const before = g.memory.arrays;
        const kept = g.scope(() => { g.ones([3]); return { deep: [g.ones([2])] }; });
        assert.equal(g.memory.arrays, before + 1);
        const ring = g.scope(() => { const o = { a: g.ones([1]), list: [] }; o.list.push(o); return o; });
        assert.equal(ring.a.item(), 1);
        ring.a.dispose();
        assert.deepEqual(kept.deep[0].toArray(), [1, 1]);
        let lost;
        g.scope(() => { lost = g.ones([3]); });
        assert.throws(() => lost.add(1), /its scope has ended/);
        assert.throws(() => kept.deep[0].add(lost), /its scope has ended/);
        assert.throws(() => g.scope(() => { g.ones([3]); throw new RangeError('x'); }), RangeError);
        assert.throws(() => g.scope(async () => {}), /cannot wait/);
        assert.throws(() => g.scope(null), /^TypeError: gpunum: null where a function is asked for/);
        kept.deep[0].dispose();
        kept.deep[0].dispose(); // does nothing
        if (Symbol.dispose) {
            const s = g.scope(), a = g.ones([2]), b = s.keep(g.zeros([2]));
            s[Symbol.dispose]();
            assert.throws(() => a.shape, GpunumError);
            b[Symbol.dispose]();
        }
        assert.equal(g.memory.arrays, before);
    });
    it("throws errors with gpunum's words", () => {
        const a = g.ones([2, 3]);
        assert.throws(() => a.matmul(a), e => e instanceof GpunumError && e instanceof Error && e.status === 2 && /gn_matmul/.test(e.message) && /\(2,3\)/.test(e.message));
        assert.deepEqual(a.add(1).toArray()[0], [2, 2, 2]); // and goes on
        assert.throws(() => a.item(), GpunumError);
        assert.throws(() => a.add(), /gn_add/);
        assert.throws(() => g.zeros([2], 'float'), /no dtype float/);
        assert.throws(() => g.array([1, 2, 3], [2]), GpunumError);
        assert.throws(() => g.zeros([1, 1, 1, 1, 1, 1, 1, 1, 1]), GpunumError);
        assert.throws(() => g.ones([1 << 20, 1 << 20]).readSync(), GpunumError);
        assert.throws(() => g.ones([1 << 15, 1 << 15], 'f64').eval(), e => e.status === 4 && /out of memory.*; \d+ arrays are alive/.test(e.message));
    });
    it('takes numbers, lists and words for what they are', async () => {
        const i = g.array([1, 2, 3], undefined, 'i32'), x = g.array([[1, 2], [3, 4]]);
        assert.deepEqual(i.isin(2.5).toArray(), [0, 0, 0]);
        assert.deepEqual(i.clip(1.5, Infinity).toArray(), [1.5, 2, 3]);
        assert.deepEqual(i.clip(2).dtype, 'i32');
        assert.deepEqual(i.clip(true).dtype, 'i32');
        assert.deepEqual(i.add([1, 2, 300]).dtype, 'i32');
        assert.deepEqual(i.cast('u8').add([1, 2, 300]).toArray(), [2, 4, 303]);
        assert.deepEqual(i.cast('i64').add(2n ** 62n).add([1, 2, 3]).toArray()[2], 2n ** 62n + 6n);
        assert.deepEqual(i.mul([0.5, 0.5, 1]).toArray(), [0.5, 1, 3]);
        assert.deepEqual(g.array([0.1, 0.2], undefined, 'f64').isin([0.1]).toArray(), [1, 0]);
        assert.deepEqual(i.mask([true, false, true]).toArray(), [1, 3]);
        assert.deepEqual(x.cast('f64').mask([true, false]).toArray(), [[1, 2]]);
        assert.equal(x.add([[1, 2]]).dtype, 'f32');
        assert.deepEqual(i.lerp(g.array([3, 4, 5], undefined, 'i32'), 0.5).toArray(), [2, 3, 4]);
        assert.deepEqual(i.cast('i64').add(2n ** 62n).toArray()[0], 2n ** 62n + 1n);
        assert.deepEqual(x.take([1, 0]).toArray(), [[2, 1], [4, 3]]);
        assert.deepEqual(x.take(1, 0).toArray(), [3, 4]);
        assert.ok(Math.abs(x.crossEntropy([0, 1]).item() - 0.8132617) < 1e-6);
        assert.deepEqual(i.pad([1], 'reflect').toArray(), [2, 1, 2, 3, 2]);
        assert.ok(Math.abs(x.matrixNorm('nuclear').item() - x.svdvals().sum().item()) < 1e-6);
        assert.equal(x.matrixNorm(1).item(), 6);
        assert.equal(x.matrixNorm(-Infinity).item(), 3);
        assert.throws(() => i.pad([1], 'mirror'), /'mirror' is none of constant, edge, reflect/);
        assert.throws(() => x.add('1a'), /string/);
        assert.throws(() => x.add({}), /object/);
        assert.throws(() => g.einsum('ij->ji', x), /a list of arrays/);
        const halves = [1.5, -0.1, 65504, 6e-8, 1e9, -Infinity, NaN, 0];
        for (const t of ['f16', 'bf16']) {
            const h = g.array(halves, undefined, t);
            assert.deepEqual(h.toArray(), h.cast('f64').toArray());
            assert.deepEqual(await h.toList(), h.cast('f64').toArray());
            assert.equal(await h.index('1').value(), h.index('1').item());
        }
        await assert.rejects(g.array([[1, 2]], [], 'c64').value(), /not a real number/);
        for (const bad of [[[1, 2], [3]], [[1, 2], [3], [4, 5, 6]], [[1], 2], [x, x], [1, undefined], [null], ['a']])
            assert.throws(() => g.array(bad), /gpunum|array/);
        assert.deepEqual(g.array(new Uint8ClampedArray([3, 4])).dtype, 'u8');
        assert.throws(() => g.zeros([4]).write(new Float64Array(2)), /takes Float32Array/);
    });
    it('makes no other number of one that its dtype does not have', () => {
        const outside = (list, dtype) => assert.throws(() => g.array(list, undefined, dtype), e => e instanceof GpunumError && e.status === 1 && /outside of/.test(e.message), `${list} ${dtype}`);
        outside([1, 300], 'u8');
        outside([-1], 'u64');
        outside([1e20], 'i32');
        outside([NaN], 'i32');
        outside([2n ** 63n], 'i64');
        outside([2 ** 63], 'i64');
        for (const bad of ['a', null, undefined, NaN, {}]) assert.throws(() => g.array([1, bad], undefined, 'i64'), /^TypeError: gpunum: /);
        assert.deepEqual(g.array([1.5, -1.5, 2n], undefined, 'i64').toArray(), [1n, -1n, 2n]); // as full and NumPy cut
        assert.deepEqual(g.array([1.5, -0.5, true], undefined, 'i32').toArray(), [1, 0, 1]);
        assert.deepEqual(g.array([2n ** 64n - 1n], undefined, 'u64').toArray(), [2n ** 64n - 1n]);
        assert.deepEqual(g.array([0.5, 256, NaN, 0, -0], undefined, 'bool').toArray(), [1, 1, 1, 0, 0]);
        assert.deepEqual(g.array(Float64Array.of(1, 2, 3, 4), [2], 'c64').toArray(), [[1, 2], [3, 4]]);
        assert.deepEqual(g.array(Int32Array.of(1, 2), [2], 'c128').toArray(), [[1, 0], [2, 0]]);
        assert.deepEqual(g.array([1, 2, 3, 4], [2n, 2]).toArray(), [[1, 2], [3, 4]]);
        const i = g.array([1, 2], undefined, 'i32');
        assert.deepEqual(i.add([2 ** 40, 1]).toArray(), [2n ** 40n + 1n, 3n]);
        assert.deepEqual(i.add(2n ** 40n).toArray(), [2n ** 40n + 1n, 2n ** 40n + 2n]);
        assert.deepEqual(i.cast('u8').lt(300n).toArray(), [1, 1]);
        assert.equal(i.add(1n).dtype, 'i32');
        for (const f of [() => g.zeros([2 ** 64]), () => g.zeros([2n ** 64n + 2n]), () => i.roll(2n ** 63n), () => g.seed(2n ** 64n), () => g.seed(-(2n ** 63n) - 1n)])
            assert.throws(f, /where a whole number of 64 bits is asked for/);
        g.seed(2n ** 64n - 1n);
        for (const f of [() => g.zeros(new Array(2)), () => g.zeros([, 3]), () => i.sum([, 0]), () => i.splitAt([, 1]), () => g.concat([i, , i]), () => i.fftn([, 2])]) // lists with holes
            assert.throws(f, /^TypeError: gpunum: .*undefined where (a number|an array) is asked for/);
    });
    it('takes numbers for what the arrays beside them are', () => {
        const m = g.array([true, false]), long = g.array([2n ** 60n + 1n, 5n], undefined, 'i64');
        assert.deepEqual(m.where(long, 0).toArray(), [2n ** 60n + 1n, 0n]);
        assert.deepEqual(m.where(0, long).toArray(), [0n, 5n]);
        assert.deepEqual(g.array([2.5, 0]).where(long, 7).toArray(), [2n ** 60n + 1n, 7n]); // whatever the condition is
        assert.equal(m.where(g.ones([2], 'f16'), 1).dtype, 'f16');
        assert.equal(m.where(1, 2).dtype, 'f32');
        assert.equal(m.where(true, false).dtype, 'bool');
        assert.deepEqual(m.and(true).toArray(), [1, 0]);
        assert.equal(m.or(false).dtype, 'bool');
        assert.deepEqual([g.randint([5], 0, 10).dtype, g.permutation(4).dtype, g.randint([2], 0, 9, 'u8').dtype], ['i64', 'i64', 'u8']);
        assert.equal(JSON.stringify({ at: m.argmax(), big: [g.array([3n, -4n], undefined, 'i64')] }), '{"at":0,"big":[[3,-4]]}');
    });
    it('takes lists and text that are longer than a stack', () => {
        const a = g.array([1, 2]), many = Array(300000).fill(a), places = Array(300000).fill(1);
        assert.equal(g.concat(many).sum().item(), 900000);
        assert.throws(() => a.pad(places), GpunumError);
        assert.throws(() => a.sum(places), GpunumError);
        assert.throws(() => a.normalize(places, places), GpunumError);
        assert.throws(() => g.einsum('i'.repeat(2 ** 21), [a]), GpunumError);
        assert.equal(g.lrMultiStep(0, 0.5, places.map((_, i) => i + 1)), 0.5);
        assert.deepEqual([g.large.length, a.add(1).toArray()], [0, [2, 3]]);
    });
    it('has defaults where NumPy and PyTorch have them, and says where none', () => {
        const x = g.array([[-1, 2], [3, Infinity]]), i = g.array([1, 4, 9], undefined, 'i32');
        assert.deepEqual(g.arange(3).toArray(), [0, 1, 2]);
        assert.deepEqual(g.eye(2).toArray(), [[1, 0], [0, 1]]);
        assert.deepEqual(g.concat([x, x]).shape, [4, 2]);
        assert.deepEqual(g.stack([x, x, x]).shape, [3, 2, 2]);
        assert.deepEqual(g.concat([x, x], -1).shape, [2, 4]);
        assert.deepEqual(x.slice(1, 1).toArray(), [[2], [Infinity]]);
        assert.deepEqual(i.slice(0, undefined, undefined, -1).toArray(), [9, 4, 1]);
        assert.deepEqual(x.clamp(0).toArray(), [[0, 2], [3, Infinity]]);
        assert.ok(x.nanToNum().toArray()[1][1] > 3e38);
        assert.ok(i.allclose(i.add(1e-6)));
        assert.deepEqual(i.histogram(2)[1].toArray(), [1, 5, 9]);
        assert.equal(i.vectorNorm().item(), Math.fround(Math.sqrt(98)));
        assert.deepEqual(i.diff().toArray(), [3, 5]);
        assert.equal(g.array([[1, 2], [2, 4]]).matrixRank().item(), 1);
        assert.ok(Math.abs(x.elu().toArray()[0][0] - Math.expm1(-1)) < 1e-6);
        const table = g.ones([3, 2]).requiresGrad();
        i.mul(0).embedding(table).sum().backward();
        assert.deepEqual(table.grad.toArray(), [[3, 3], [0, 0], [0, 0]]);
        assert.throws(() => g.full([2]), /full: undefined where a number is asked for/);
        for (const f of [() => i.quantile(), () => i.repeat(), () => g.clipGradNorm([table]), () => i.topk()]) assert.throws(f, /is a number/);
    });
    it('keeps contexts apart, and knows a closed one', async () => {
        const other = await open({ relaxed }), a = other.ones([3]), opt = other.sgd([other.ones([1]).requiresGrad()]);
        for (const f of [() => g.ones([3]).add(a), () => g.concat([g.ones([3]), a]), () => g.sgd([a])]) assert.throws(f, /belongs to another context/);
        assert.throws(() => { opt.lr = -1; }, /gn_lr_set: -1/);
        other.close();
        for (const f of [() => other.zeros([2]), () => other.array([1]), () => a.shape, () => a.add(1), () => a.readSync(), () => opt.step(), () => other.memory])
            assert.throws(f, e => e instanceof GpunumError && /closed/.test(e.message));
        await assert.rejects(a.read(), /closed/);
        a.dispose();
        opt.dispose();
    });
    it('prints and keeps files as NumPy does', () => {
        assert.equal(String(g.array([1, 2.5])), 'array([1. , 2.5], dtype=float32)');
        const a = g.arange(0, 5, 1, 'i32'), bytes = a.saveNpy();
        assert.equal(String.fromCharCode(...bytes.slice(1, 6)), 'NUMPY');
        assert.deepEqual(g.loadNpy(bytes).readSync(), a.readSync());
        assert.throws(() => g.loadNpy(bytes.slice(0, 20)), GpunumError);
    });
    it('takes the losses that have weights and labels to ignore', () => {
        const logits = [[1, 2, 3], [1, 0, -1], [0.5, 0.5, 2]], labels = [2, 0, 1], weight = [1, 2, 3];
        const logP = logits.map(r => r.map(v => v - Math.log(r.reduce((s, x) => s + Math.exp(x), 0))));
        const x = g.array(logits), nll = labels.map((l, i) => -logP[i][l]), w = labels.map(l => weight[l]), sum = list => list.reduce((s, v) => s + v, 0);
        near(x.crossEntropyWith(labels, { weight }).item(), sum(nll.map((v, i) => v * w[i])) / sum(w));
        near(x.crossEntropyWith(labels, { weight: g.array(weight), reduction: 'none' }).toArray(), nll.map((v, i) => v * w[i]));
        near(x.crossEntropyWith(labels, { ignored: 0, reduction: 'sum' }).item(), nll[0] + nll[2]);
        near(x.crossEntropyWith([2, -100, 1], { ignored: -100 }).item(), (nll[0] + nll[2]) / 2);
        near(x.crossEntropyWith(labels, { labelSmoothing: 0.3 }).item(), sum(nll.map((v, i) => 0.7 * v + 0.1 * sum(logP[i].map(p => -p)))) / 3);
        near(x.crossEntropyWith(labels).item(), x.crossEntropy(labels).item());
        near(x.logSoftmax().nllLoss(labels, { weight }).item(), sum(nll.map((v, i) => v * w[i])) / sum(w));
        near(g.array(logP).nllLoss(labels, { reduction: 'sum' }).item(), sum(nll));
        assert.throws(() => x.crossEntropyWith(labels, { reduction: 'average' }), /crossEntropyWith: argument 2: 'average' is none of mean, sum, none, batchMean/);
        assert.throws(() => x.crossEntropyWith(labels, { smoothing: 0.1 }), /no option smoothing, of weight, labelSmoothing, ignored, reduction/);
        assert.throws(() => x.crossEntropyWith(labels, { weight: [1, 2] }), GpunumError);
        assert.throws(() => x.crossEntropy(labels, { weight }), /crossEntropy: 2 arguments where there are 1 at the most/);
        assert.throws(() => x.crossEntropyWith(labels, 0.1), /argument 2: number where an object is asked for/);
        assert.throws(() => x.crossEntropyWith(labels, { labelSmoothing: 'much' }), /string where a number/);
    });
    it('resizes, samples and normalizes images', () => {
        const x = g.arange(4).reshape([1, 1, 2, 2]);
        assert.deepEqual(x.interpolate(3, 4).toArray()[0][0], [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3]]);
        near(x.interpolate(4, 4, 'bilinear').toArray()[0][0], [[0, 0.25, 0.75, 1], [0.5, 0.75, 1.25, 1.5], [1.5, 1.75, 2.25, 2.5], [2, 2.25, 2.75, 3]]);
        near(x.interpolate(4, 4, 'bilinear', true).toArray()[0][0], [0, 1, 2, 3].map(r => [0, 1, 2, 3].map(c => (2 * r + c) / 3)));
        assert.throws(() => x.interpolate(4, 4, 'cubic'), /interpolate: argument 3: 'cubic' is none of nearest, bilinear/);
        assert.throws(() => x.interpolate(4), /interpolate: argument 2: it is a number/);
        const at = places => g.array(places).reshape([1, 1, places.length, 2]);
        near(x.gridSample(at([[0, 0], [-1, -1], [1, 0], [3, 0]]), { alignCorners: true }).toArray()[0][0][0], [1.5, 0, 2, 0]);
        near(x.gridSample(at([[0, 0], [-1, -1]])).toArray()[0][0][0], [1.5, 0]);
        near(x.gridSample(at([[3, 0], [-3, 3]]), { outside: 'border', nearest: true, alignCorners: true }).toArray()[0][0][0], [1, 2]);
        near(x.gridSample(at([[1.5, -1]]), { outside: 'reflection', alignCorners: true }).toArray()[0][0][0], [0.75]);
        assert.deepEqual(x.maxPool2d(2).toArray(), [[[[3]]]]);
        assert.deepEqual(x.maxPool2d(2, undefined, true).map(a => a.item()), [3, 3]);
        assert.deepEqual(x.adaptiveMaxPool2d(1, 2, true).map(a => a.toArray()[0][0]), [[[2, 3]], [[2n, 3n]]]);
        near(x.gridSample(g.array([[[1, 0, 0], [0, 1, 0]]]).affineGrid(2, 2)).toArray(), x.toArray());
        assert.throws(() => x.gridSample(at([[0, 0]]), { outside: 'wrap' }), /'wrap' is none of zeros, border, reflection/);
        const image = g.arange(12).reshape([1, 3, 2, 2]), mean = [0.5, 1, 2], deviation = [2, 4, 0.5];
        near(image.normalize(mean, deviation).toArray()[0].flat(2), Array.from({ length: 12 }, (_, i) => (i - mean[i >> 2]) / deviation[i >> 2]));
        near(g.full([1, 1, 1, 1], 51, 'u8').normalize([0.1], [0.5]).item(), 0.2);
        assert.throws(() => image.normalize([1, 2], [1]), /2 means with 1 deviations/);
        assert.throws(() => image.normalize([1, 2], [1, 2]), e => e instanceof GpunumError && /gn_normalize/.test(e.message));
        assert.throws(() => image.normalize(['a', 2, 3], deviation), /normalize: string where a number/);
    });
    it('transforms several axes', () => {
        const data = [[1, 2, 4], [0, -1, 3]], x = g.array(data), turn = t => [Math.cos(2 * Math.PI * t), -Math.sin(2 * Math.PI * t)];
        const sum = (k, l) => [0, 1].map(part => data.reduce((s, row, i) => row.reduce((r, v, j) => r + v * turn(k * i / 2 + l * j / 3)[part], s), 0));
        const full = [0, 1].map(k => [0, 1, 2].map(l => sum(k, l)));
        near(x.fftn().toArray(), full);
        near(x.fftn(null, null, 'forward').toArray().flat(2), full.flat(2).map(v => v / 6));
        near(x.rfftn().toArray(), full.map(r => r.slice(0, 2)));
        near(x.fftn().ifftn().real().toArray(), data);
        near(x.rfftn().irfftn([2, 3]).toArray(), data);
        near(x.fftn(undefined, [0]).toArray(), x.fft(0, 0).toArray());
        assert.deepEqual(x.fftn([4]).shape, [2, 4]);
        near(x.fftn([4, 2], [1, 0]).toArray(), x.pad([0, 0, 0, 1]).fftn().toArray());
        assert.throws(() => x.fftn([2], [0, 1]), /fftn: 1 lengths of 2 axes/);
        assert.throws(() => x.fftn(3), /a list of numbers/);
        assert.throws(() => x.fftn(null, [2]), GpunumError);
        assert.throws(() => x.fftn(null, [0.5]), /0.5 where a whole number/);
    });
    it('splits, meets and contracts', () => {
        const a = g.arange(10), m = a.reshape([2, 5]), lists = parts => parts.map(p => p.toArray());
        assert.deepEqual(lists(a.arraySplit(3)), [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]);
        assert.deepEqual(lists(a.splitAt([2, -1])), [[0, 1], [2, 3, 4, 5, 6, 7, 8], [9]]);
        assert.deepEqual(lists(m.splitAt([3], 1)), [[[0, 1, 2], [5, 6, 7]], [[3, 4], [8, 9]]]);
        assert.deepEqual(lists(m.unstack()), [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]);
        assert.deepEqual(m.unstack(-1).length, 5);
        assert.throws(() => a.split(3), GpunumError);
        assert.throws(() => a.split(1.5), /split: 1.5 where a whole number/);
        assert.throws(() => a.split(-1), GpunumError);
        assert.throws(() => a.unstack(3), GpunumError);
        assert.throws(() => a.splitAt(2), /a list of numbers/);
        assert.deepEqual(lists(g.meshgrid([g.array([1, 2, 3]), g.array([4, 5])])), [[[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]]]);
        assert.deepEqual(lists(g.meshgrid([g.array([1, 2]), g.array([4, 5])], true)), [[[1, 1], [2, 2]], [[4, 5], [4, 5]]]);
        assert.throws(() => g.meshgrid(g.ones([2])), /a list of arrays/);
        const p = g.arange(6).reshape([1, 2, 3]), q = g.arange(6).reshape([2, 3, 1]);
        assert.deepEqual(p.tensordot(q).toArray(), [[55]]);
        assert.deepEqual(m.tensordot(m, [1, 1]).toArray(), [[30, 80], [80, 255]]);
        assert.deepEqual(p.tensordot(q, [[1, 2], [0, 1]]).toArray(), [[55]]);
        assert.deepEqual(m.tensordot(m, 0).shape, [2, 5, 2, 5]);
        assert.throws(() => p.tensordot(q, [[1, 2], [0]]), /2 axes with 1/);
        assert.throws(() => m.tensordot(m, 1), GpunumError);
        assert.equal(m.tensordot(m).item(), 285);
        assert.throws(() => m.tensordot(3), /number where an array/);
        assert.equal(g.evalAll([a.add(1), m.mul(2)]), undefined);
        const held = [g.array([1, 2])], now = [g.array([3, 6])];
        g.emaUpdate(held, now, 0.75);
        near(held[0].toArray(), [1.5, 3]);
        assert.throws(() => g.emaUpdate(held, [], 0.5), /1 averages of 0 parameters/);
        assert.throws(() => g.emaUpdate(held, now), /emaUpdate: undefined where a number/);
    });
    it('knows dtypes, whole numbers and what it is asked to print', () => {
        assert.deepEqual([g.dtypeName('bf16'), g.dtypeSize('c128'), g.promote('i32', 'f16'), g.promote('u64', 'i64'), g.promote('u8', 'i8')],
            ['bfloat16', 16, 'f16', 'f64', 'i16']);
        assert.equal(g.full([2], 2n ** 63n, 'u64').index('0').itemInt(), 2n ** 63n);
        assert.deepEqual(g.full(2, -(2n ** 62n) - 1n, 'i64').toArray(), [-(2n ** 62n) - 1n, -(2n ** 62n) - 1n]);
        assert.deepEqual(g.full([1], [1, -2], 'c64').toArray(), [[1, -2]]);
        assert.deepEqual(g.full([2], 3, 'c128').toArray(), [[3, 0], [3, 0]]);
        assert.deepEqual(g.full([2], true, 'bool').toArray(), [1, 1]);
        assert.throws(() => g.full([2], 300, 'u8'), GpunumError);
        assert.equal(g.scalar(7, 'i32').itemInt(), 7n);
        assert.throws(() => g.ones([2]).itemInt(), GpunumError);
        const a = g.array([[1 / 3, 2 / 3]]);
        assert.equal(a.bytes, 8);
        assert.equal(a.toString({ precision: 2 }), 'array([[0.33, 0.67]], dtype=float32)');
        assert.equal(g.arange(100).toString({ threshold: 10, edgeItems: 1 }), 'array([ 0., ..., 99.], shape=(100,), dtype=float32)');
        assert.throws(() => a.toString({ digits: 2 }), /no option digits, of precision, threshold, edgeItems, lineWidth/);
        assert.equal(a.to('cpu'), a);
        assert.throws(() => a.to('cuda'), /'cuda' is none of cpu, gpu/);
        assert.equal(g.memory.gpuBytes, 0);
        g.seed(5);
        const s = g.seedSplit();
        g.seed(5);
        assert.equal(typeof s, 'bigint');
        assert.equal(g.seedSplit(), s);
        for (const f of [() => a.sum('x'), () => a.sum({ axis: 1 }), () => a.sum(0.5), () => a.reshape('2,1'), () => a.softmax('x'), () => g.array([1, 2], 'f64'), () => a.add({ a: 1 }),
            () => a.sum(0, true)]) assert.throws(f, e => e instanceof TypeError && /^gpunum: \w+: /.test(e.message), String(f));
        assert.deepEqual(g.array([1, 2], 2).shape, [2]);
        assert.deepEqual(g.array([0, 2], undefined, 'i32').oneHot(3).toArray(), [[1, 0, 0], [0, 0, 1]]);
        assert.equal(g.array([0, 2], undefined, 'i32').oneHot(3, 'u8').dtype, 'u8');
        assert.throws(() => a.cast(), /cast: argument 1: it is a dtype/);
        assert.throws(() => a * 2, /a.mul\(b\) is a \* b/);
        assert.equal(`${g.array([1])}`, 'array([1.], dtype=float32)');
        assert.equal(JSON.stringify({ x: g.array([[1, 2]]) }), '{"x":[[1,2]]}');
        assert.equal(inspect([g.array([1])]), '[ array([1.], dtype=float32) ]');
        assert.match(inspect(g), /^Context \{ CPU, /);
    });
    it('has the schedules of learning rates', () => {
        const lr = 0.1, cosine = (t, n) => lr * (1 + Math.cos(Math.PI * t / n)) / 2, most = 1e-12;
        near([0, 9, 10, 25].map(t => g.lrStep(t, lr, 10)), [lr, lr, lr * 0.1, lr * 0.01], most);
        near([0, 3, 7].map(t => g.lrMultiStep(t, lr, [3, 5], 0.5)), [lr, lr / 2, lr / 4], most);
        near(g.lrExponential(3, lr, 0.9), lr * 0.9 ** 3, most);
        near([0, 4, 10].map(t => g.lrCosine(t, lr, 10)), [0, 4, 10].map(t => cosine(t, 10)), most);
        near(g.lrCosine(5, lr, 10, 0.02), 0.06, most);
        near([9, 10, 12, 35].map(t => g.lrCosineRestarts(t, lr, 10, 2)), [cosine(9, 10), lr, cosine(2, 20), cosine(5, 40)], most);
        near([0, 5, 20].map(t => g.lrLinear(t, lr, 0.5, 1, 10)), [0.05, 0.075, 0.1], most);
        near(g.lrOneCycle(30, lr, 101), lr, 1e-3);
        assert.throws(() => g.lrStep(1.5, lr, 10), /lrStep: argument 1/);
        assert.throws(() => g.lrExponential(1, lr), /lrExponential: argument 3: it is a number/);
        const p = { lr: 1, patience: 1, factor: 0.5 }; // PyTorch's ReduceLROnPlateau
        assert.deepEqual([5, 4, 4, 4, 3.9, 4, 4, 4, 4].map(v => g.lrPlateau(p, v)), [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125]);
        assert.deepEqual([p.best, p.begun, p.rises], [3.9, true, false]);
        const saved = JSON.parse(JSON.stringify(p));
        assert.equal(g.lrPlateau(saved, 4), g.lrPlateau(p, 4));
        assert.throws(() => g.lrPlateau(0.1, 4), /lrPlateau: argument 1: number where an object/);
        assert.throws(() => g.lrPlateau({ lr: 1, waits: 3 }, 4), /no option waits/);
    });
    it('reads and writes npz, IDX and CSV', () => {
        const a = Float32Array.from([1, 2.5, -3, 1e-20, 0.1, 6]), packed = zip({ 'a.npy': npy([2, 3], a), 'bias.npy': npy([2], a.slice(0, 2)) });
        const both = g.loadNpz(packed);
        assert.deepEqual(Object.keys(both), ['a', 'bias']);
        assert.deepEqual(both.a.shape, [2, 3]);
        assert.deepEqual(both.a.readSync(), a);
        assert.deepEqual(g.loadNpz(packed, 'bias').toArray(), [1, 2.5]);
        assert.throws(() => g.loadNpz(packed, 'b'), e => e instanceof GpunumError && /gn_load_npz_memory: memory: there is no array 'b', but: a bias/.test(e.message));
        assert.throws(() => g.loadNpz(packed.subarray(0, 100)), /gn_npz_names_memory: memory/);
        assert.throws(() => g.loadNpz('a.npz'), /string where bytes are asked for/);
        const saved = g.saveNpz({ x: both.a, 'ä': g.array([1, 2], undefined, 'i32') }), view = Buffer.from(saved.buffer);
        assert.equal(view.readUInt32LE(0), 0x04034b50);
        const from = 30 + view.readUInt16LE(26) + view.readUInt16LE(28); // stored, as it is
        assert.equal(view.toString('latin1', from + 1, from + 6), 'NUMPY');
        assert.deepEqual(new Float32Array(saved.slice(from + 10 + view.readUInt16LE(from + 8)).slice(0, 24).buffer), a);
        assert.deepEqual(g.loadNpz(saved)['ä'].toArray(), [1, 2]);
        assert.throws(() => g.saveNpz({ x: 3 }), /number where an array/);
        assert.deepEqual([g.saveNpz({}).length, g.loadNpz(g.saveNpz({}))], [22, {}]);
        assert.deepEqual(g.loadNpy(npy([6], a)).readSync(), a);
        assert.deepEqual(g.loadIdx(Uint8Array.of(0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255)).toArray(), [[1, 2, 3], [4, 5, 255]]);
        assert.throws(() => g.loadIdx(Uint8Array.of(0, 0, 8, 1, 0, 0, 0, 9, 1)), /gn_load_idx_memory/);
        const table = g.loadCsv('x,y\r\n 1 ,"2.5"\r\n\r\n-3e2,nan\n', 1);
        assert.deepEqual(table.toArray(), [[1, 2.5], [-300, NaN]]);
        assert.equal(table.dtype, 'f32');
        assert.deepEqual(g.loadCsv(utf8('9223372036854775807;-1'), 0, ';', 'i64').toArray(), [[2n ** 63n - 1n, -1n]]);
        assert.deepEqual(g.loadCsv('1 0 true', 0, ' ', 'bool').toArray(), [[1, 0, 1]]);
        assert.deepEqual(g.loadCsv('').shape, [0, 0]);
        assert.deepEqual(g.loadCsv(new Uint8Array(new SharedArrayBuffer(3)).fill(49)).toArray(), [[111]]);
        for (const [text, why, dtype] of [['1,2\n3,4x', /line 2, column 2: '4x' is not a number of dtype f32/], ['1,2\n3', /line 2 has 1 columns, the lines before have 2/],
            ['1,,2', /line 1, column 2: ''/], ['0x10', /not a number/], ['256', /'256' is out of the range of u8/, 'u8'], ['1.5', /not a number of dtype i32/, 'i32']])
            assert.throws(() => g.loadCsv(text, 0, ',', dtype), e => e instanceof GpunumError && e.status === 7 && why.test(e.message), text);
        assert.throws(() => g.loadCsv('1', 0, '.'), /'.' cannot separate numbers/);
        assert.throws(() => g.loadCsv('1', 0, ',', 'zz'), /no dtype zz/);
        assert.throws(() => g.loadCsv('1', 0, ',', 'c64'), /c64 has no form/);
        assert.equal(g.array([[1, 0.1], [-Infinity, 1e30]]).saveCsv('a,b'), 'a,b\n1,0.1\n-inf,1e+30\n');
        assert.equal(g.array([1n, -(2n ** 62n)], undefined, 'i64').saveCsv(), '1\n-4611686018427387904\n');
        const r = g.randn([40, 3]);
        assert.deepEqual(g.loadCsv(r.saveCsv(undefined, ';'), 0, ';').readSync(), r.readSync());
        assert.throws(() => g.ones([1, 1, 1]).saveCsv(), /an array of 3 dimensions is no table/);
    });
    it('reads and writes safetensors', async () => {
        const w = Float32Array.from([1, 2, 3, 4, 5, 6]), file = safetensors({ w: ['F32', [2, 3], w], 'layer.b': ['I64', [2], BigInt64Array.from([7n, -8n])] }, { made: 'by hand, ä' });
        const p = g.loadSafetensors(file);
        assert.deepEqual([p.count, p.names], [2, ['w', 'layer.b']]);
        assert.deepEqual(p.get('w').toArray(), [[1, 2, 3], [4, 5, 6]]);
        assert.deepEqual(p.get('layer.b').toArray(), [7n, -8n]);
        assert.equal(p.get('b'), null);
        assert.equal(p.noted('made'), 'by hand, ä');
        assert.equal(p.noted('who'), null);
        assert.deepEqual(Object.keys(Object.fromEntries(p)), ['w', 'layer.b']);
        const a = g.zeros([2, 3]), b = g.zeros([1]), q = g.params({ w: a }).note('epoch', '3');
        const [header, data] = fromSafetensors(q.add('extra', b).save());
        assert.deepEqual(header.__metadata__, { epoch: '3' });
        assert.deepEqual([header.w.dtype, header.w.shape, data(header.w.data_offsets)], ['F32', [2, 3], new Float32Array(6)]);
        assert.throws(() => q.load(file), e => e instanceof GpunumError && /gn_params_load_memory/.test(e.message));
        assert.deepEqual(q.loadMatching(file), { missing: ['extra'], unused: ['layer.b'] });
        assert.deepEqual(a.toArray(), [[1, 2, 3], [4, 5, 6]]);
        assert.equal(q.noted('made'), 'by hand, ä');
        const host = await q.host();
        assert.deepEqual([...host.save()], [...q.save()]);
        assert.deepEqual(q.load(safetensors({ w: ['F32', [2, 3], w.map(v => -v)], extra: ['F32', [1], Float32Array.of(9)] })).get('extra').item(), 9);
        assert.throws(() => q.add('w', b), GpunumError);
        assert.throws(() => q.add('v', 3), /number where an array/);
        assert.throws(() => q.add('v\0w', a), /a text with a 0 in it/);
        assert.throws(() => q.note('v', 'w\0x'), /a text with a 0 in it/);
        assert.throws(() => g.loadSafetensors(file.subarray(0, 40)), e => e.status === 7 && /gn_load_safetensors_memory/.test(e.message));
        assert.throws(() => q.load(3), /number where bytes/);
        for (const list of [p, q, host]) list.dispose();
        assert.throws(() => p.count, /this list of parameters was disposed of/);
        p.dispose();
    });
    it('goes on training from saved bytes with the same bits', () => {
        const goal = g.array([1, -2, 3]), make = () => {
            g.seed(11);
            const w = g.randn([3]).requiresGrad(), opt = g.adam([w], { lr: 0.05 }), list = g.params({ w });
            return { w, opt, list, train: n => {
                for (let i = 0; i < n; i++) g.scope(() => { opt.zeroGrads(); w.dropout(0.5).mseLoss(goal).backward(); opt.step(); });
            } };
        };
        const one = make();
        one.train(5);
        one.opt.lr = 0.02;
        const bytes = one.list.addOptimizer('adam', one.opt).save();
        one.train(5);
        const two = make();
        two.list.addOptimizer('adam', two.opt).load(bytes);
        two.opt.restore(two.list, 'adam');
        assert.equal(two.opt.lr, 0.02);
        two.train(5);
        assert.deepEqual(two.w.readSync(), one.w.readSync());
        assert.throws(() => two.opt.restore(two.list, 'sgd'), GpunumError);
        for (const { opt, list } of [one, two]) {
            opt.dispose();
            list.dispose();
        }
        // AdamW's formula (Loshchilov and Hutter, 2019), in two groups.
        const v = g.array([1, 2]).requiresGrad(), u = g.array([3]).requiresGrad(), opt = g.adamw([v], { lr: 0.1, weightDecay: 0.2 });
        opt.addGroup([u], 0.5, 0);
        const state = [[1, 0, 0, 0.1, 0.2], [2, 0, 0, 0.1, 0.2], [3, 0, 0, 0.05, 0]];
        for (let t = 1; t <= 3; t++) {
            opt.zeroGrads();
            v.square().sum().add(u.pow(3).sum()).backward();
            opt.step();
            for (const [i, [x, m, r, lr, decay]] of state.entries()) {
                const d = i < 2 ? 2 * x : 3 * x * x, m2 = 0.9 * m + 0.1 * d, r2 = 0.999 * r + 0.001 * d * d;
                state[i] = [x * (1 - lr * decay) - lr * m2 / (1 - 0.9 ** t) / (Math.sqrt(r2 / (1 - 0.999 ** t)) + 1e-8), m2, r2, lr, decay];
            }
        }
        near([...v.toArray(), u.toArray()[0]], state.map(x => x[0]));
        opt.dispose();
        assert.throws(() => opt.step(), /this optimizer was disposed of/);
    });
    it('calls functions of JavaScript for values and derivatives', () => {
        const x = g.array([1, 2, 3]).requiresGrad(), k = g.array([2, 2, 2]).requiresGrad();
        // A derivative that is not the function's own shows that it is taken.
        const y = g.custom((a, b) => a.mul(b), (gy, out, a, b) => [gy.mul(10), g.ones([3]).mul(out)], [x, k]);
        assert.deepEqual(y.toArray(), [2, 4, 6]);
        y.sum().backward();
        assert.deepEqual([x.grad.toArray(), k.grad.toArray()], [[10, 10, 10], [2, 4, 6]]);
        x.zeroGrad();
        g.custom(a => a, gy => gy, [x]).sum().backward();
        assert.deepEqual(x.grad.toArray(), [1, 1, 1]);
        let runs = 0;
        const z = g.checkpoint(a => { runs++; return a.exp().mul(a); }, [x]);
        x.zeroGrad();
        z.sum().backward();
        assert.equal(runs, 2);
        near(x.grad.toArray(), [1, 2, 3].map(v => Math.exp(v) * (1 + v)));
        const d = g.array([0.3, -0.7], undefined, 'f64').requiresGrad();
        assert.ok(g.gradcheck(a => a.sin().mul(a).sum(), [d]) < 1e-8);
        assert.ok(g.gradcheck(a => g.custom(b => b.square().sum(), (gy, out, b) => gy.mul(b), [a]), [d]) > 0.49); // half of what it should be
        assert.throws(() => g.custom(() => { throw new RangeError('mine'); }, gy => gy, [x]), e => e instanceof RangeError && e.message === 'mine');
        assert.throws(() => g.custom(a => a.matmul(g.ones([7, 7])), gy => gy, [x]), /gn_matmul: \(3,\) x \(7,7\)/);
        assert.throws(() => g.custom(() => 3, gy => gy, [x]), /number where an array is asked for/);
        assert.throws(() => g.custom(a => a, [x]), /object where a function is asked for/);
        assert.throws(() => g.checkpoint(3, [x]), /number where a function/);
        assert.throws(() => g.gradcheck(a => a.sum(), [x.detach()]), /no input requires a gradient/);
        assert.throws(() => g.custom(a => a.mul(2), () => [], [x]).sum().backward(), /custom: 0 gradients of 1 inputs/);
        assert.throws(() => g.custom(a => a.mul(2), () => g.ones([7]), [x]).sum().backward(), GpunumError);
        assert.throws(() => g.custom(a => a.mul(2), () => { throw new SyntaxError('back'); }, [x]).sum().backward(), SyntaxError);
        assert.deepEqual(x.add(1).toArray(), [2, 3, 4]); // and goes on
        let lost;
        g.custom(a => { lost = a.mul(2); return a.add(1); }, gy => gy, [x]);
        assert.throws(() => lost.shape, /was disposed of/);
        assert.equal(g.autocast('bf16', () => g.ones([4, 4]).matmul(g.ones([4, 4]))).dtype, 'bf16');
        assert.equal(g.ones([4, 4]).matmul(g.ones([4, 4])).dtype, 'f32');
        assert.throws(() => g.autocast('bf16', () => { throw new RangeError('x'); }), RangeError);
        assert.equal(g.ones([4, 4]).matmul(g.ones([4, 4])).dtype, 'f32');
    });
    it('lets go of functions of JavaScript with their records', () => assert.equal(g.functions.size, 0));
    it('deals out batches', () => {
        const x = g.arange(14).reshape([7, 2]), y = g.arange(7, undefined, 1, 'i32'), order = l => [...l].length;
        const l = g.loader([x, y], { batch: 3, shuffle: true, seed: 4 }), before = g.memory.arrays;
        assert.equal(l.batches, 3);
        const epoch = () => {
            const seen = [];
            for (const [bx, by] of l) {
                assert.deepEqual(bx.toArray(), by.toArray().map(i => [2 * i, 2 * i + 1]));
                seen.push(...by.toArray());
            }
            return seen;
        };
        const [first, second] = [epoch(), epoch()];
        for (const e of [first, second]) assert.deepEqual([...e].sort(), [0, 1, 2, 3, 4, 5, 6]);
        assert.notDeepEqual(first, second);
        assert.equal(g.memory.arrays, before);
        l.seek(0);
        assert.deepEqual(epoch(), first);
        l.seek(1, 2);
        assert.deepEqual(epoch(), second.slice(6));
        for (const batch of l) break;
        assert.equal(g.memory.arrays, before);
        assert.throws(() => l.seek(0, 4), GpunumError);
        l.dispose();
        assert.throws(() => l.next(), /this loader was disposed of/);
        const short = g.loader([x], { batch: 3, dropLast: true });
        assert.deepEqual([short.next()[0].toArray(), short.next()[0].toArray(), short.next()], [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]], null]);
        assert.equal(order(short), 2);
        short.dispose();
        assert.throws(() => g.loader([x, g.ones([3])], { batch: 2 }), /gn_loader_new/);
        assert.throws(() => g.loader([x], { size: 2 }), /loader: no option size/);
        assert.throws(() => g.loader([]), /0 arrays where 1 to 32 can be/);
        assert.throws(() => g.loader(x), /a list of arrays/);
    });
    it('writes in place', () => {
        const a = g.zeros([3]);
        assert.deepEqual(a.write(Float32Array.from([1, 2, 3])).toArray(), [1, 2, 3]);
        assert.throws(() => a.write(new Float32Array(2)), GpunumError);
    });
    it('leaves what nobody holds to the garbage collector', async () => {
        if (!globalThis.gc) return;
        const { scopes } = g;
        g.scopes = []; // of no scope
        const before = g.memory.arrays;
        for (let i = 0; i < 100; i++) g.ones([10]);
        g.scopes = scopes;
        for (let i = 0; i < 50 && g.memory.arrays > before; i++) {
            globalThis.gc();
            await new Promise(r => setTimeout(r, 10));
        }
        assert.ok(g.memory.arrays < before + 100);
    });
    it('leaves optimizers, lists of parameters and loaders to the garbage collector too', async () => {
        if (!globalThis.gc) return;
        for (const [make, of] of [[a => g.adam([a.requiresGrad()]), 'arrays'], [a => g.params({ a }), 'arrays'], [a => g.loader([a]), 'bytes']]) {
            const before = g.memory[of];
            for (let i = 0; i < 20; i++) {
                const a = g.ones([1000]);
                make(a);
                a.dispose(); // the optimizer, the list or the loader alone has it, or its copy
            }
            const held = g.memory[of], few = before + (held - before) / 2;
            assert.ok(held - before >= (of === 'arrays' ? 20 : 80000), `${make}: ${before}, ${held}`);
            for (let i = 0; i < 100 && g.memory[of] > few; i++) {
                globalThis.gc();
                await new Promise(r => setTimeout(r, 10));
            }
            assert.ok(g.memory[of] <= few, `${make}: ${before}, ${held}, ${g.memory[of]}`);
        }
    });
    test(`${relaxed} ${threads}: every method of the declarations is there`, async () => {
        const fs = await import('node:fs');
        const { stripTypeScriptTypes } = await import('node:module'), text = fs.readFileSync(where + '/gpunum.d.ts', 'utf8');
        stripTypeScriptTypes?.(text); // throws where it does not parse; node 22 has it
        const lists = readFileSync(new URL('../../tools/web/by_hand.txt', import.meta.url), 'utf8');
        assert.match(text, /\/\*\* natural logarithm; [^*]*\*\/\n {4}log\(\): NDArray;/);
        assert.match(text, /bincount\(weights\?: Operand \| null/);
        for (const [, owner, body] of text.matchAll(/export class (\w+)[^{]*\{([\s\S]*?)\n\}/g)) {
            const C = all[owner];
            for (const [, method] of body.matchAll(/^ {4}(\w+)(?:<\w+>)?\(/gm)) if (owner !== 'Scope') assert.equal(typeof C.prototype[method], 'function', owner + '.' + method);
            for (const method of Object.getOwnPropertyNames(C?.prototype ?? {})) // and the other way round, but for this module's own
                if (calls.some(c => c[0] === owner && c[1] === method) || lists.includes(`${owner}.${method}\n`)) assert.match(body, new RegExp(`^ {4}(readonly )?${method}[:(<]`, 'm'));
        }
        g.close();
        g.close();
    });
}
test('a program ends while workers wait', () => {
    const said = execFileSync(process.execPath, ['-e', `import('${where}/gpunum.js').then(({ open }) => open({ threads: 2 })).then(g =>
        console.log(g.ones([100, 100]).sum().item(), g.device.threads))`], { timeout: 60000 });
    assert.equal(String(said), '10000 2\n');
});
test('goes on where memory is more than 2 GB', async () => {
    for (const threads of [1, 2]) {
        const g = await open({ backend: 'cpu', threads });
        for (let i = 0; i < 2; i++) assert.notEqual(g.m._malloc(1.1e9), 0); // a gigabyte that nobody writes takes no time
        const far = g.ones([25e6]).eval();
        assert.ok(g.m.HEAPU8.length > 2.2e9);
        const x = g.arange(6), w = g.ones([3]).requiresGrad();
        assert.deepEqual([...await x.read(), ...x.add(1).readSync()], [0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6]);
        assert.deepEqual(x.split(2).map(p => p.toArray()), [[0, 1, 2], [3, 4, 5]]);
        g.custom(v => v.mul(2), gy => gy.mul(5), [w]).sum().backward();
        assert.deepEqual(w.grad.toArray(), [5, 5, 5]);
        assert.deepEqual(g.loadNpz(g.saveNpz({ x })).x.toArray(), x.toArray());
        assert.deepEqual(g.loadSafetensors(g.params({ x }).save()).get('x').toArray(), x.toArray());
        assert.equal(String(g.concat(Array(2000).fill(x)).sum()), 'array(30000., dtype=float32)');
        assert.equal(far.index('24999999').item(), 1);
        g.close();
    }
});
test('says in words what is wrong with arguments', async () => {
    const g = await open({ backend: 'cpu' }), internal = new Set(`constructor close dispose check room copied mine own shape list axes piece numbersOf answer borrow parts bytes cstring
        saved called lent handed numbered recorded stacked forget scope sync toString toJSON`.split(/\s+/));
    const junk = [undefined, null, NaN, 1.5, -1, 1e10, 'x', '', {}, { a: 1 }, [], [1.5], ['x'], [null], [[1], [2, 3]], () => 1, true, 10n, new Date(), new Map(),
        new Uint8Array(3), new BigInt64Array(2), new ArrayBuffer(8), new DataView(new ArrayBuffer(4))];
    const made = { Context: () => g, NDArray: () => g.arange(6).reshape([2, 3]), Optimizer: () => g.sgd([g.ones([2]).requiresGrad()]),
        Params: () => g.params({ a: g.ones([2]) }), Loader: () => g.loader([g.ones([4])], { batch: 2 }) };
    let state = 1, tried = 0;
    const draw = n => (state = Math.imul(state, 1664525) + 1013904223 >>> 0) % 65521 % n;
    for (const [owner, make] of Object.entries(made))
        for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(all[owner].prototype))) {
            if (internal.has(name) || typeof value !== 'function') continue;
            for (let t = 0; t < 60; t++, tried++) {
                const s = g.scope(), o = make(), args = Array.from({ length: Math.floor(t / 12) }, () => t > 30 && draw(4) === 0 ? g.ones([2, 3]) : junk[draw(junk.length)]);
                try {
                    const y = await o[name](...args);
                    if (y instanceof all.Optimizer || y instanceof all.Params || y instanceof all.Loader) y.dispose();
                } catch (e) {
                    assert.ok(e instanceof GpunumError || e instanceof TypeError && /^gpunum: /.test(e.message) && !/is not a function|Cannot /.test(e.message), `${owner}.${name}(${inspect(args)}): ${e.stack}`);
                }
                s.end();
                if (o !== g) o.dispose();
                assert.equal(g.m._gn_status_get(g.ptr), 0);
            }
        }
    assert.ok(tried > 20000);
    assert.deepEqual([g.memory.arrays, g.functions.size, g.m.stackSave()], [0, 0, (await open({ backend: 'cpu' })).m.stackSave()]);
    g.close();
});
test('tells the console what it is asked to, and knows its options', async () => {
    const { stderr } = spawnSync(process.execPath, ['-e', `import('${where}/gpunum.js').then(async ({ open }) => {
        const g = await open({ log: 'error', seed: 2n ** 63n });
        try { g.ones([2]).matmul(g.ones([3])); } catch {}
    })`], { timeout: 60000 });
    assert.match(String(stderr), /gpunum error: gn_matmul/);
    await assert.rejects(open({ log: 'loud' }), /'loud' is none of error, warning, info, debug/);
    await assert.rejects(open({ thread: 2 }), /open: no option thread/);
    for (const threads of [1.5, -1, NaN, 'many']) await assert.rejects(open({ backend: 'cpu', threads }), /^TypeError: gpunum: open: /);
    await assert.rejects(open(2), /gpunum: number where an object of options/);
    const plain = await open(null);
    plain.close();
    const able = execFileSync(process.execPath, ['-e', `WebAssembly.validate = () => false; // as an engine without relaxed SIMD
        import('${where}/gpunum.js').then(({ open }) => open({ backend: 'cpu', relaxed: true })).catch(e => console.log(e.message))`], { timeout: 60000 });
    assert.equal(String(able), 'open: this engine has no relaxed SIMD\n');
    const far = await open({ backend: 'cpu', folder: new URL(`file://${where}/`) });
    assert.equal(far.ones([3]).sum().item(), 3);
    far.close();
    await assert.rejects(open({ backend: 'cpu', folder: new URL('file:///no/such/folder/') }), /no\/such\/folder\/core.mjs/);
    await assert.rejects(open({ backend: 'gpu' }), /'gpu' is none of auto, cpu, webgpu/);
});
