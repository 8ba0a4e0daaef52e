import './bench_time.js';
import * as jax from './peers/@jax-js/jax/dist/index.js';

const np = jax.numpy;
const device = new URLSearchParams(location.search).get('backend') ?? 'wasm';
if (!(await jax.init(device)).includes(device)) postMessage({ end: true });
jax.defaultDevice(device);
const of = (n, shape) => np.array(benchNumbers(n)).reshape(shape);
const a = of(512 * 512, [512, 512]), x = of(1 << 20, [1 << 20]), y = of(1 << 20, [1 << 20]), s = of(200000, [200000]);
const m = of(1e6, [1000, 1000]), small = of(10, [10]), re = of(64 * 1024, [64, 1024]), im = of(64 * 1024, [64, 1024]);
for (const v of [a, x, y, s, m, small, re, im]) await v.blockUntilReady();
// Waits for a result, and for each of several.
const run = (row, fn) => benchTime(row, async () => {
    for (const v of [fn()].flat()) {
        await v.blockUntilReady();
        v.dispose();
    }
});
const matmul = jax.jit((p, q) => np.matmul(p, q));
const chain = jax.jit((p, q) => jax.nn.sigmoid(np.sin(p.ref).mul(q).add(p)));
const softmax = jax.jit(p => jax.nn.softmax(p));
await run('matmul', () => matmul(a.ref, a.ref));
await run('chain', () => chain(x.ref, y.ref));
await run('softmax', () => softmax(m.ref));
await run('sort', () => np.sort(s.ref));
await run('small', () => {
    let v = small.ref;
    for (let i = 0; i < 50; i++) v = v.mul(1.001).add(0.1);
    return v;
});
await run('fft', () => {
    const { real, imag } = jax.numpy.fft.fft({ real: re.ref, imag: im.ref });
    return [real, imag];
});
postMessage({ end: true });
