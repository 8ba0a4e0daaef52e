// One worker after another does all rows and tells what they took.
import { sayDevice } from './page.js';

const asked = new URLSearchParams(location.search), wanted = asked.get('rows'); // ?rows=chain,small runs these alone
const rows = [['matmul', 'Matrix product', '512 x 512, float32'], ['fft', 'Fourier transform', '64 complex rows of 1024'],
    ['chain', 'Fused chain', 'sigmoid(sin(a) b + a), a million numbers'], ['sort', 'Sort', '200 000 numbers'],
    ['softmax', 'Softmax', '1000 x 1000'], ['small', 'A hundred small ops', 'x = x 1.001 + 0.1, ten numbers']].filter(([r]) => wanted?.split(',').includes(r) ?? true);
const threads = navigator.hardwareConcurrency, many = crossOriginIsolated; // else there is one thread
const all = [['gpunum', 'gpunum', 'bench_gpunum.js?backend=', 'module', 'cpu'], ['tfjs', 'TensorFlow.js', 'bench_tfjs.js?backend=', 'classic', 'wasm'],
    ['jax', 'jax-js', 'bench_jax.js?backend=', 'module', 'wasm']].flatMap(([name, title, file, type, cpu]) => [
    [`${name}-webgpu`, `${title}, WebGPU`, `${file}webgpu`, type], [name, title, file + cpu, type],
    ...many ? [[`${name}-threads`, `${title}, ${threads} threads`, `${file + cpu}&threads=0`, type]] : []]);
// ?only=gpunum-webgpu,gpunum runs these alone.
const only = asked.get('only')?.split(','), device = {};
let libraries = all.filter(([l]) => only?.includes(l) ?? true);
const again = document.getElementById('again'), doing = document.getElementById('doing'), found = {};

function draw() {
    document.getElementById('rows').replaceChildren(...rows.map(([row, title, what]) => {
        const card = document.createElement('div'), most = Math.max(...libraries.map(([l]) => found[l]?.[row]?.ms ?? 0));
        card.className = 'card';
        card.innerHTML = `<h2>${title}</h2><div class="quiet">${what}</div>`;
        for (const [l, name] of libraries) {
            const r = found[l]?.[row], bar = document.createElement('div');
            bar.className = 'bar';
            bar.innerHTML = '<span></span><span><i></i></span><span></span>';
            bar.children[0].textContent = name;
            bar.querySelector('i').className = l.split('-')[0];
            bar.dataset.library = l;
            bar.querySelector('i').style.width = r?.ms ? `${100 * r.ms / most}%` : 0;
            bar.children[2].textContent = r?.ms ? `${r.ms.toPrecision(3)} ms` : r?.none ?? '';
            if (r?.ms) bar.dataset.ms = r.ms;
            card.append(bar);
        }
        card.dataset.row = row;
        return card;
    }));
}

function runOne([name, title, file, type]) {
    return new Promise(done => {
        const worker = new Worker(`${file}${wanted ? `&rows=${wanted}` : ''}`, { type }), give = why => {
            for (const [row] of rows) (found[name] ??= {})[row] ??= { none: why };
            worker.terminate();
            draw();
            done();
        };
        doing.textContent = `${title} ...`;
        worker.onerror = () => give('not here');
        worker.onmessage = ({ data }) => {
            if (data.device) device[name] = data.device;
            if (data.why) device.why = data.why;
            if (data.end) return give('none');
            if (data.row) {
                (found[name] ??= {})[data.row] = data;
                draw();
            }
        };
    });
}

async function run() {
    again.disabled = true;
    const gpu = await navigator.gpu?.requestAdapter().catch(() => null);
    if (!gpu) libraries = libraries.filter(([l]) => l === 'gpunum-webgpu' || !l.endsWith('webgpu'));
    for (const l of libraries) delete found[l[0]];
    draw();
    for (const l of libraries) await runOne(l);
    const cpu = device.gpunum ?? device['gpunum-threads'];
    if (device['gpunum-webgpu']) sayDevice(device['gpunum-webgpu'], cpu);
    else if (cpu) sayDevice({ ...cpu, why: device.why ?? cpu.why });
    doing.textContent = '';
    again.disabled = false;
    document.body.dataset.ready = 'yes';
}
again.onclick = run;
run();
