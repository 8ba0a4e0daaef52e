// The page's side: charts, and the canvas whose drawing goes to the worker.
import { LineChart, color, sayDevice } from './page.js';

const of = id => document.getElementById(id), worker = new Worker('mnist_worker.js' + location.search, { type: 'module' });
const loss = new LineChart(of('loss'), { most: 0.5 }), accuracy = new LineChart(of('accuracy'), { least: 0.8, ink: '--second' });
const bars = Array.from({ length: 10 }, (_, i) => {
    const bar = document.createElement('div');
    bar.className = 'bar';
    bar.style.gridTemplateColumns = '1rem 1fr 3rem';
    bar.innerHTML = `<span>${i}</span><span><i class="gpunum" style="width: 0"></i></span><span></span>`;
    of('chances').append(bar);
    return bar;
});

worker.onmessage = ({ data }) => {
    if (data.device) sayDevice(data.device);
    if (data.losses) {
        for (const l of data.losses) loss.add(l);
        of('speed').textContent = `${data.steps} steps of ${data.batch} digits, ${data.ms.toFixed(1)} ms each`;
        document.body.dataset.steps = data.steps;
    }
    if (data.accuracy !== undefined) {
        accuracy.add(data.accuracy);
        of('right').textContent = `${(100 * data.accuracy).toFixed(1)} %`;
        document.body.dataset.accuracy = data.accuracy;
    }
    if (data.chances) {
        const best = data.chances.indexOf(Math.max(...data.chances));
        of('digit').textContent = best;
        bars.forEach((bar, i) => {
            bar.querySelector('i').style.width = `${100 * data.chances[i]}%`;
            bar.lastChild.textContent = `${Math.round(100 * data.chances[i])} %`;
        });
    }
    if (data.error) of('device').textContent = data.error;
};
worker.onerror = e => { of('device').textContent = `The worker ended: ${e.message}`; };
of('train').onclick = () => {
    const run = of('train').textContent !== 'Pause';
    of('train').textContent = run ? 'Pause' : 'Go on';
    worker.postMessage({ run });
};

// ---- drawing

const canvas = of('draw'), pen = canvas.getContext('2d', { willReadFrequently: true });
let last = null;
function clear() {
    pen.clearRect(0, 0, 280, 280);
    of('digit').textContent = '-';
    for (const bar of bars) bar.querySelector('i').style.width = 0, bar.lastChild.textContent = '';
}
of('clear').onclick = clear;
const place = e => [e.offsetX * 280 / canvas.clientWidth, e.offsetY * 280 / canvas.clientHeight];
canvas.onpointerdown = e => {
    canvas.setPointerCapture(e.pointerId);
    last = place(e);
    line(e);
};
canvas.onpointermove = e => last && line(e);
canvas.onpointerup = canvas.onpointercancel = () => { last = null; };
function line(e) {
    const to = place(e);
    pen.strokeStyle = color('--ink');
    pen.lineWidth = 22;
    pen.lineCap = pen.lineJoin = 'round';
    pen.beginPath();
    pen.moveTo(...last);
    pen.lineTo(...to);
    pen.stroke();
    last = to;
    worker.postMessage({ digit: asInMnist() });
}
// As MNIST's digits are made: the drawing fills 20 x 20, and its centre of mass is the middle of 28 x 28.
function asInMnist() {
    const ink = pen.getImageData(0, 0, 280, 280).data;
    let left = 280, right = -1, top = 280, bottom = -1, mass = 0, mx = 0, my = 0;
    for (let y = 0; y < 280; y++)
        for (let x = 0; x < 280; x++) {
            const v = ink[4 * (280 * y + x) + 3];
            if (v < 32) continue;
            left = Math.min(left, x), right = Math.max(right, x), top = Math.min(top, y), bottom = Math.max(bottom, y);
            mass += v, mx += v * x, my += v * y;
        }
    const scale = 20 / Math.max(right - left + 1, bottom - top + 1, 40), small = new OffscreenCanvas(28, 28), c = small.getContext('2d');
    c.imageSmoothingQuality = 'high';
    c.setTransform(scale, 0, 0, scale, 14 - scale * mx / mass, 14 - scale * my / mass);
    c.drawImage(canvas, 0, 0);
    return Float32Array.from({ length: 784 }, (_, i) => c.getImageData(0, 0, 28, 28).data[4 * i + 3] / 255);
}
