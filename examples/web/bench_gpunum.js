import './bench_time.js';
import { open } from './gpunum/gpunum.js';

const backend = new URLSearchParams(location.search).get('backend');
let g;
try {
    g = await open({ backend, threads: benchThreads });
} catch (e) {
    postMessage({ end: true, why: e.message });
    throw e;
}
postMessage({ device: g.device });
const a = g.array(benchNumbers(512 * 512), [512, 512]), x = g.array(benchNumbers(1 << 20)), y = g.array(benchNumbers(1 << 20));
const rows = g.array(benchNumbers(64 * 2048), [64, 1024], 'c64'), s = g.array(benchNumbers(200000)), m = g.array(benchNumbers(1e6), [1000, 1000]);
const small = g.array(benchNumbers(10));
const run = (row, fn) => benchTime(row, () => {
    g.scope(() => { fn().eval(); });
    return g.sync();
});
await run('matmul', () => a.matmul(a));
await run('fft', () => rows.fft());
await run('chain', () => x.sin().mul(y).add(x).sigmoid());
await run('sort', () => s.sort());
await run('softmax', () => m.softmax());
await run('small', () => {
    let v = small;
    for (let i = 0; i < 50; i++) v = v.mul(1.001).add(0.1);
    return v;
});
postMessage({ end: true });
