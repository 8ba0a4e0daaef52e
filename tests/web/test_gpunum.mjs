// gpunum.js in node's own test runner: node --test tests/web/test_gpunum.mjs, after tools/web/build.sh. GN_PACKAGE names
// another folder than build/npm.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

const where = process.env.GN_PACKAGE ?? new URL('../../build/npm', import.meta.url).pathname;
const { open, GpunumError, NDArray } = await import(where + '/gpunum.js');

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
        assert.deepEqual(image.conv2d(kernel, null, { stride: 2, pad: 1 }).toArray()[0][0], [[4, 6, 4], [6, 9, 6]]);
    });
    it('disposes of what a scope made', () => {
        const before = g.memory.arrays;
        const kept = g.scope(() => { g.ones([3]); return { deep: [g.ones([2])] }; });
        assert.equal(g.memory.arrays, before + 1);
        assert.deepEqual(kept.deep[0].toArray(), [1, 1]);
        let lost;
        g.scope(() => { lost = g.ones([3]); });
        assert.throws(() => lost.add(1), /its scope has ended/);
        assert.throws(() => kept.deep[0].add(lost), /its scope has ended/);
        assert.throws(() => g.scope(() => { g.ones([3]); throw new RangeError('x'); }), RangeError);
        assert.throws(() => g.scope(async () => {}), /cannot wait/);
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
        for (const f of [() => i.quantile(), () => i.repeat(), () => g.full([2]), () => g.clipGradNorm([table]), () => i.topk()]) assert.throws(f, /is a number/);
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
    test(`${relaxed} ${threads}: every method of the declarations is there`, async () => {
        const fs = await import('node:fs');
        const { stripTypeScriptTypes } = await import('node:module'), text = fs.readFileSync(where + '/gpunum.d.ts', 'utf8');
        stripTypeScriptTypes?.(text); // throws where it does not parse; node 22 has it
        assert.match(text, /bincount\(weights\?: Operand \| null/);
        for (const [, owner, body] of text.matchAll(/export class (\w+)[^{]*\{([\s\S]*?)\n\}/g)) {
            const C = owner === 'NDArray' ? NDArray : (await import(where + '/gpunum.js'))[owner];
            for (const [, method] of body.matchAll(/^ {4}(\w+)(?:<\w+>)?\(/gm)) if (owner !== 'Scope') assert.equal(typeof C.prototype[method], 'function', owner + '.' + method);
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
