importScripts('bench_time.js', 'peers/@tensorflow/tfjs/dist/tf.min.js', 'peers/@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.min.js');

(async () => {
    const webgpu = location.search.includes('webgpu');
    if (webgpu) importScripts('peers/@tensorflow/tfjs-backend-webgpu/dist/tf-backend-webgpu.min.js');
    tf.wasm.setWasmPaths('peers/@tensorflow/tfjs-backend-wasm/dist/');
    tf.wasm.setThreadsCount(benchThreads);
    if (benchThreads === 1) tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
    await tf.setBackend(webgpu ? 'webgpu' : 'wasm');
    await tf.ready();
    const a = tf.tensor(benchNumbers(512 * 512), [512, 512]), x = tf.tensor(benchNumbers(1 << 20)), y = tf.tensor(benchNumbers(1 << 20));
    const parts = benchNumbers(64 * 2048), re = parts.filter((_, i) => i % 2 === 0), im = parts.filter((_, i) => i % 2 === 1);
    const m = tf.tensor(benchNumbers(1e6), [1000, 1000]), s = tf.tensor(benchNumbers(200000)), small = tf.tensor(benchNumbers(10));
    const run = (row, fn) => benchTime(row, async () => {
        tf.tidy(() => { fn(); });
        if (!webgpu || !tf.backend().commandEncoder) return; // small work it leaves to the CPU
        tf.backend().endComputePassEncoder(); // which submitQueue leaves to its callers
        tf.backend().submitQueue();
        await tf.backend().device.queue.onSubmittedWorkDone();
    });
    await run('matmul', () => tf.matMul(a, a));
    await run('chain', () => tf.sigmoid(tf.add(tf.mul(tf.sin(x), y), x)));
    await run('sort', () => tf.topk(s, 200000));
    await run('softmax', () => tf.softmax(m));
    await run('small', () => {
        let v = small;
        for (let i = 0; i < 50; i++) v = v.mul(1.001).add(0.1);
        return v;
    });
    await run('fft', () => tf.fft(tf.complex(tf.tensor(re, [64, 1024]), tf.tensor(im, [64, 1024]))));
    postMessage({ end: true });
})().catch(e => setTimeout(() => { throw e; }));
