// Threads of the CPU: ?threads=0 for all that there are. Where there is one, what shares memory with workers is hidden from who takes it unasked.
self.benchThreads = Number(new URLSearchParams(location.search).get('threads') ?? 1) || navigator.hardwareConcurrency;
if (benchThreads === 1) delete self.SharedArrayBuffer;
// Calls fn for a third of a second, as often at a time as the browser's coarse clock wants: milliseconds of the fastest. Without modules, so that every kind of worker can load it.
self.benchTime = async function benchTime(row, fn) {
    const wanted = new URLSearchParams(location.search).get('rows');
    if (wanted && !wanted.split(',').includes(row)) return;
    try {
        await fn();
        let best = Infinity, count = 1;
        for (const end = performance.now() + 350; performance.now() < end;) {
            const start = performance.now();
            for (let i = 0; i < count; i++) await fn();
            const taken = performance.now() - start;
            if (taken < 10) count *= 2;
            else best = Math.min(best, taken / count);
        }
        postMessage({ row, ms: best });
    } catch (e) {
        postMessage({ row, none: 'none', why: String(e) });
    }
};
// The same numbers for everybody, 0 to 1.
self.benchNumbers = n => Float32Array.from({ length: n }, (_, i) => (i * 0.6180339887498949) % 1);
