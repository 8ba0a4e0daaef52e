// What the pages share: the line that says what computes, and a chart of lines.

// Where the page's address asks for it: ?backend=cpu, or webgpu for one that is made of software; ?threads=4, 0 for all.
const address = new URLSearchParams(location.search);
export const backend = address.get('backend') ?? 'auto', threads = Number(address.get('threads') ?? 1);

export const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// In words, from a context's `device`.
export function sayDevice(device, beside) {
    const words = d => `${d.name.replace('1 threads', '1 thread')}, ${d.relaxed ? 'with' : 'without'} fused multiply-add${d.relaxed ? '' : ', which this browser lacks'}`;
    const gpu = (device.backend === 'webgpu' ? '' : ` No GPU: ${device.why}.`) + (device.whyOneThread ? ` One thread: ${device.whyOneThread}.` : '');
    const text = device.backend === 'webgpu' ? `Computes with WebGPU on ${device.name}${beside ? `, and on the ${words(beside)}` : ''}.` : `Computes on the ${words(device)}.${gpu}`;
    document.getElementById('device').textContent = text;
}

// Lines over their points' numbers: chart.add(y). The newest `most` points, squeezed two into one when there are more.
export class LineChart {
    constructor(canvas, { least = 0, most = 1, ink = '--first', digits = 2 } = {}) {
        Object.assign(this, { canvas, least, most, ink, digits, points: [], each: 1, sum: 0, count: 0 });
        new ResizeObserver(() => this.draw()).observe(canvas);
    }
    add(y) {
        this.sum += y;
        if (++this.count < this.each) return;
        this.points.push(this.sum / this.count);
        this.sum = this.count = 0;
        if (this.points.length >= 400) {
            this.points = this.points.filter((_, i) => i % 2 === 0).map((_, i) => (this.points[2 * i] + this.points[2 * i + 1]) / 2);
            this.each *= 2;
        }
        this.draw();
    }
    draw() {
        const { canvas, points } = this, scale = devicePixelRatio, w = canvas.clientWidth, h = canvas.clientHeight;
        if (w === 0) return;
        canvas.width = w * scale;
        canvas.height = h * scale;
        const c = canvas.getContext('2d'), most = Math.max(this.most, ...points), left = 38, bottom = h - 6, top = 8;
        const y = v => bottom - (v - this.least) / (most - this.least) * (bottom - top);
        c.scale(scale, scale);
        c.font = '12px system-ui, sans-serif';
        c.textAlign = 'right';
        c.textBaseline = 'middle';
        for (let i = 0; i <= 4; i++) {
            const v = this.least + (most - this.least) * i / 4;
            c.strokeStyle = color('--line');
            c.beginPath();
            c.moveTo(left, y(v));
            c.lineTo(w, y(v));
            c.stroke();
            c.fillStyle = color('--quiet');
            c.fillText(v.toFixed(this.digits), left - 6, y(v));
        }
        c.strokeStyle = color(this.ink);
        c.lineWidth = 2;
        c.lineJoin = 'round';
        c.beginPath();
        points.forEach((v, i) => c.lineTo(left + (w - left - 2) * i / Math.max(points.length - 1, 1), y(v)));
        c.stroke();
    }
}
