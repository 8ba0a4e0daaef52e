// The wave equation u'' = c^2 laplace(u) in the space of wave numbers, where each one is an oscillator of its own.
import { open } from './gpunum/gpunum.js';
import { backend, sayDevice, threads } from './page.js';

const N = 256, STEP = 1 / 60, GRAVITY = 900, g = await open({ seed: 3, backend, threads });
sayDevice(g.device);
// Of each wave, (N, N / 2 + 1): its angular frequency in deep water, and what is left of it after a frame.
const [cosine, over, under] = g.scope(() => {
    const ky = g.fftfreq(N, 1 / (2 * Math.PI)).reshape([N, 1]), kx = g.rfftfreq(N, 1 / (2 * Math.PI)), k = ky.hypot(kx);
    const w = k.mul(k.square().mul(0.5).add(1)).mul(GRAVITY).sqrt(), loss = k.square().mul(-0.01).sub(0.003).exp();
    // Turned by w t, and damped: u and v go to c u + s/w v and c v - s w u. Standing water (w = 0) has s/w = t.
    const c = w.mul(STEP).cos(), s = w.mul(STEP).sin(), still = w.eq(0);
    return [c.mul(loss), still.where(STEP, s.div(still.where(1, w))).mul(loss), s.mul(w).mul(loss)];
});
const places = g.arange(0, N);
let u = g.zeros([N, N / 2 + 1], 'c64'), v = g.zeros([N, N / 2 + 1], 'c64');
const drops = [];

// A round hill at (x, y), as waves.
function hill(x, y, height, width) {
    const away = (p, n) => { // distance the short way round
        const d = p.sub(n).add(N / 2);
        return d.mod(N).sub(N / 2).square().mul(-1 / (2 * width * width)).exp();
    };
    const h = away(places, y).reshape([N, 1]).mul(away(places, x)).mul(height);
    return h.sub(h.mean()).rfft(N, -1).fft(N, 0);
}

const canvas = document.getElementById('water'), pen = canvas.getContext('2d');
let frames = 0, since = performance.now(), work = 0;
async function frame(now) {
    const start = performance.now();
    if (drops.length === 0 && frames % 40 === 0) drops.push([Math.random() * N, Math.random() * N, 4]);
    const [nu, nv, picture] = g.scope(() => {
        const start = drops.splice(0).reduce((sum, [x, y, height]) => sum.add(hill(x, y, height, 4)), u);
        const p = start.mul(cosine).add(v.mul(over)), q = v.mul(cosine).sub(start.mul(under));
        const height = p.ifft(N, 0).irfft(N, -1), slope = height.roll(1, 1).sub(height.roll(1, 0));
        // Dark in the valleys, light on the hills and on the sides that face the light.
        const light = slope.mul(3).add(height.mul(0.4)).add(0.45).clamp(0, 1), shine = light.sub(0.7).clamp(0, 1);
        const channel = (low, high) => light.mul(high - low).add(shine.mul(420)).add(low).clamp(0, 255);
        const rgba = g.stack([channel(6, 60), channel(30, 150), channel(70, 215), g.full([N, N], 255)], -1).cast('u8');
        return [p.eval(), q.eval(), rgba.eval()];
    });
    u.dispose();
    v.dispose();
    [u, v] = [nu, nv];
    pen.putImageData(new ImageData(new Uint8ClampedArray((await picture.read()).buffer), N, N), 0, 0);
    picture.dispose();
    work += performance.now() - start;
    if (++frames % 30 === 0) {
        document.getElementById('speed').textContent = `${(30000 / (now - since)).toFixed(0)} frames a second, ${(work / 30).toFixed(1)} ms of work each`;
        since = now;
        work = 0;
    }
    document.body.dataset.frames = frames;
    requestAnimationFrame(frame);
}
canvas.onpointerdown = canvas.onpointermove = e => {
    if (e.type === 'pointermove' && e.buttons === 0) return;
    drops.push([e.offsetX * N / canvas.clientWidth, e.offsetY * N / canvas.clientHeight, 1.5]);
};
requestAnimationFrame(frame);
