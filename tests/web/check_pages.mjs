// Opens the pages of examples/web in headless Chromium and looks at what must be seen: check_pages.mjs [FOLDER], which gets
// screenshots. Chromium is driven by its own protocol; its WebGPU is software, which the pages use where their address asks
// for it, and which takes seconds to compile a kernel. Exit status 77: there is no Chromium.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url)), folder = process.argv[2] ?? 'screenshots', port = 18000 + process.pid % 2000;
const chromium = ['chromium', 'google-chrome', 'chrome'].find(c => spawnSync(c, ['--version']).status === 0);
if (chromium === undefined) {
    console.log('there is no Chromium');
    process.exit(process.env.GN_REQUIRE_ALL ? 1 : 77);
}
mkdirSync(folder, { recursive: true });
const profile = mkdtempSync(join(tmpdir(), 'gpunum'));
const server = spawn(process.execPath, [join(root, 'examples/web/serve.mjs'), '--port', String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
const browser = spawn(chromium, ['--headless=new', '--no-sandbox', '--disable-gpu', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader',
    '--no-first-run', '--remote-debugging-port=0',
    `--user-data-dir=${profile}`, '--window-size=1000,900', 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] });
function end(code) {
    server.kill();
    browser.kill();
    setTimeout(() => {
        rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
        process.exit(code);
    }, 500);
}
const late = setTimeout(() => {
    console.log('five minutes are over');
    end(1);
}, 300000);

const said = (stream, pattern) => new Promise((done, failed) => {
    let text = '';
    stream.on('data', d => {
        const found = (text += d).match(pattern);
        if (found) done(found);
    });
    stream.on('close', () => failed(new Error(`ended: ${text}`)));
});
const sleep = ms => new Promise(done => setTimeout(done, ms));

async function connect(url) {
    const socket = new WebSocket(url), waiting = new Map();
    await new Promise((done, failed) => { socket.onopen = done; socket.onerror = failed; });
    let id = 0;
    socket.onmessage = ({ data }) => {
        const m = JSON.parse(data);
        waiting.get(m.id)?.(m);
        if (m.method === 'Runtime.exceptionThrown') problems.push(m.params.exceptionDetails.exception?.description ?? m.params.exceptionDetails.text);
    };
    return (method, params = {}, sessionId) => new Promise((done, failed) => {
        waiting.set(++id, m => m.error ? failed(new Error(`${method}: ${m.error.message}`)) : done(m.result));
        socket.send(JSON.stringify({ id, method, params, sessionId }));
    });
}
const problems = [];

class Page {
    // `before`: what to run ahead of the page's own scripts.
    static async open(send, path, { width = 1000, before } = {}) {
        const p = new Page(), { targetId } = await send('Target.createTarget', { url: 'about:blank' });
        const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
        p.send = (method, params) => send(method, params, sessionId);
        p.close = () => send('Target.closeTarget', { targetId });
        await p.send('Runtime.enable');
        if (before) {
            await p.send('Page.enable');
            await p.send('Page.addScriptToEvaluateOnNewDocument', { source: before });
        }
        await p.send('Emulation.setDeviceMetricsOverride', { width, height: 1000, deviceScaleFactor: 1, mobile: width < 500 });
        await p.send('Page.navigate', { url: `http://localhost:${port}/${path}` });
        return p;
    }
    async value(expression) {
        const { result, exceptionDetails } = await this.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
        if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        return result.value;
    }
    async until(expression, seconds) {
        for (const last = Date.now() + 1000 * seconds; ;) {
            const v = await this.value(`(() => { try { return ${expression}; } catch { return false; } })()`); // while it loads there is no body
            if (v) return v;
            if (problems.length > 0) throw new Error(problems[0]);
            if (Date.now() > last) throw new Error(`after ${seconds} s not: ${expression}\n${await this.value('document.body.innerText')}`);
            await sleep(100);
        }
    }
    // What a program of check_javascript.sh says, behind its exit status.
    program(name) {
        return this.value(`import('/check/${name}.mjs').then(({ default: create }) => new Promise(done => {
            let said = '';
            create({ print: t => { said += t; }, onExit: code => done(code + ' ' + said), onAbort: why => done('abort ' + why) });
        }))`);
    }
    async picture(name) {
        const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
        writeFileSync(join(folder, name), Buffer.from(data, 'base64'));
    }
    // Along lines of points given as parts of an element's size.
    async draw(selector, lines) {
        const box = await this.value(`document.querySelector('${selector}').scrollIntoView({ block: 'center' }), JSON.parse(JSON.stringify(document.querySelector('${selector}').getBoundingClientRect()))`);
        const mouse = (type, [x, y], buttons) => this.send('Input.dispatchMouseEvent', { type, x: box.x + x * box.width, y: box.y + y * box.height,
            button: 'left', buttons, clickCount: 1 });
        for (const line of lines) {
            await mouse('mousePressed', line[0], 1);
            for (let i = 1; i < line.length; i++)
                for (let k = 1; k <= 6; k++) await mouse('mouseMoved', [0, 1].map(j => line[i - 1][j] + (line[i][j] - line[i - 1][j]) * k / 6), 1);
            await mouse('mouseReleased', line[line.length - 1], 0);
        }
    }
    // Different pixels of a canvas, as a number of its whole contents.
    pixels(selector) {
        return this.value(`(() => { const c = document.querySelector('${selector}'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            let h = 0; for (let i = 0; i < d.length; i++) h = (h * 31 + d[i]) | 0; return { hash: h, colors: new Set(new Uint32Array(d.buffer)).size }; })()`);
    }
}

// Of each row of the benchmark its name and what each library took.
const BARS = `[...document.querySelectorAll('.card')].map(c => [c.dataset.row, ...[...c.querySelectorAll('.bar')].map(b => b.lastChild.textContent)])`;
let cpuText = ''; // what the first page computes on the CPU
const ONE = [[[0.5, 0.15], [0.5, 0.85]]];
const SEVEN = [[[0.25, 0.2], [0.75, 0.2], [0.45, 0.85]]];
const ZERO = [Array.from({ length: 25 }, (_, i) => [0.5 + 0.2 * Math.sin(i * Math.PI / 12), 0.5 - 0.32 * Math.cos(i * Math.PI / 12)])];

const checks = {
    async start(send) {
        const p = await Page.open(send, 'index.html');
        await p.until('document.body.dataset.ready', 20);
        assert.match(await p.value("document.getElementById('device').textContent"), /Computes on the .*WebAssembly SIMD128.* No GPU: WebGPU is made of software here/);
        const painted = page => page.value("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0");
        let paint = await painted(p);
        for (let again = 2; again > 0 && paint >= 1000; again--) { // other tests have the machine, too
            const other = await Page.open(send, 'index.html');
            await other.until('document.body.dataset.ready', 20);
            paint = await painted(other);
            await other.close();
        }
        console.log(`start: first paint after ${paint.toFixed(0)} ms, ${(await p.value("document.getElementById('try').textContent")).match(/\d+ ms to open.*/)[0]}`);
        cpuText = await p.value("document.getElementById('try').textContent");
        assert.ok(paint < 1000, 'the first paint took a second');
        await p.picture('start.png');
        await p.close();
    },
    async without(send) {
        const p = await Page.open(send, 'index.html', { before: "Object.defineProperty(Navigator.prototype, 'gpu', { value: undefined })" });
        await p.until('document.body.dataset.ready', 20);
        assert.match(await p.value("document.getElementById('device').textContent"), /No GPU: this browser has no WebGPU\.$/);
        await p.close();
    },
    async threads(send) {
        const p = await Page.open(send, 'index.html?threads=3');
        await p.until('document.body.dataset.ready', 20);
        assert.match(await p.value("document.getElementById('device').textContent"), /Computes on the CPU, 3 threads, WebAssembly/);
        assert.equal(await p.value(`import('/gpunum/gpunum.js').then(async ({ open }) => {
            const same = [];
            for (const threads of [1, 3]) {
                const g = await open({ backend: 'cpu', threads, seed: 7 }), x = g.randn([300, 300]), y = x.matmul(x).sort(1);
                same.push(y.sin().mul(x).add(y.softmax(1)).readSync().join());
                g.close();
            }
            return same[0] === same[1];
        })`), true);
        await p.close();
        const alone = await Page.open(send, 'index.html?threads=3', { before: "Object.defineProperty(globalThis, 'crossOriginIsolated', { value: false })" });
        await alone.until('document.body.dataset.ready', 20);
        assert.match(await alone.value("document.getElementById('device').textContent"), /Computes on the CPU, 1 thread, .* One thread: this page is not cross-origin isolated/);
        await alone.close();
    },
    async gpu(send) {
        const p = await Page.open(send, 'index.html?backend=webgpu');
        if (!await p.value("navigator.gpu?.requestAdapter().then(a => a !== null)")) return console.log('this Chromium has no WebGPU');
        await p.until('document.body.dataset.ready', 60);
        assert.match(await p.value("document.getElementById('device').textContent"), /Computes with WebGPU on ./);
        const text = await p.value("document.getElementById('try').textContent"), first = t => t.slice(0, t.indexOf('randn'));
        assert.equal(first(text), first(cpuText), 'other numbers than on the CPU');
        console.log(`WebGPU: ${text.match(/\d+ ms to open.*/)[0]}`);
        for (const how of ['JSPI', 'ASYNCIFY']) {
            const wait = await p.program(`wait_${how}`);
            console.log(`a program with ${how}: ${wait}`);
            assert.equal(wait, '0 GPU: 122 518 1 4 506.0 1');
        }
        // An op of the page's own on the GPU, and what was trained there saved and loaded: its promises, and what cannot wait.
        assert.deepEqual(await p.value(`import('/gpunum/gpunum.js').then(async ({ open }) => {
            const g = await open({ backend: 'webgpu', seed: 3 }), w = g.randn([2000]).requiresGrad(), opt = g.sgd([w], { lr: 0.5, momentum: 0.5 });
            g.custom(x => x.mul(2), (gy, y, x) => gy.mul(x), [w]).sum().backward();
            const before = await w.read(), gradient = await w.grad.read();
            opt.step();
            const list = g.params({ w }).note('from', 'a page').addOptimizer('opt', opt);
            let told = '';
            try { list.save(); } catch (e) { told = e.message; }
            const bytes = (await list.host()).save(), trained = await w.read();
            opt.step();
            list.load(bytes);
            opt.restore(list, 'opt');
            const again = await w.read(), [rows] = g.loader([await w.host()], { batch: 1500 });
            const roots = trained.map(Math.sqrt).filter(v => v === v), mean = roots.reduce((t, v) => t + v) / roots.length;
            const counted = Math.abs(await w.sqrt().nanmean().value() - mean) < 1e-5;
            // Places, which are int64, and a gradient by such; what is counted. Such a GPU has int64 as two words.
            const images = g.randn([8, 4, 20, 20]).requiresGrad(), largest = images.maxPool2d(3, { stride: 2, pad: 1 });
            const at = await images.reshape([32, 400]).argmax(-1).read(), pixels = await images.read();
            const first = at.every((i, k) => Number(i) === pixels.subarray(400 * k, 400 * k + 400).indexOf(Math.max(...pixels.subarray(400 * k, 400 * k + 400))));
            largest.sum().backward();
            const windows = (await images.grad.read()).reduce((t, v) => t + v) === largest.size;
            const rows32 = images.detach().reshape([32, 400]), down = pixels.filter(v => v < 0).length, labels = await rows32.argmin(1).host();
            const sums = Number(await rows32.lt(0).sum().value()) === down && Math.abs(await rows32.lt(0).mean().value() * pixels.length / down - 1) < 1e-6;
            const total = Number(await rows32.mul(1e8).cast('i32').sum().value()), exact = pixels.reduce((t, v) => t + Math.trunc(Math.fround(v * 1e8)), 0);
            const right = await rows32.neg().argmax(1).eq(labels).mean().value() === 1 && await rows32.argmax(1).eq(labels).mean().value() === 0;
            const [, places] = rows32.reshape([8, 4, 20, 20]).maxPool2d(20, {}, true);
            const poolPlaces = (await places.read()).every((v, i) => v === at[i]), numbers = await rows32.argmax(1).sub(3).cast('i32').read();
            // What is counted and divided of them there.
            const tally = rows32.argmax(1).mod(7).bincount(null, 7), shares = await tally.mul(100).floorDiv(tally.sum()).read();
            const most = Number(await rows32.argmax(1).max().value()), middle = await rows32.argmax(1).median().value(), order = Array.from(at, Number).sort((x, y) => x - y);
            const integers = shares.every((v, k) => Number(v) === Math.floor(order.filter(i => i % 7 === k).length * 100 / 32)) && most === order[31] && middle === (order[15] + order[16]) / 2;
            const counts = sums && total === exact && right && poolPlaces && numbers.every((v, i) => v === Number(at[i]) - 3);
            const found = [first, windows, counts, counted, integers, gradient.every((v, i) => v === before[i]), trained.every((v, i) => v === before[i] / 2), again.every((v, i) => v === trained[i]),
                list.noted('from'), g.functions.size, rows[0].ptr, told.slice(0, 80), g.memory.gpuBytes > 8000];
            g.close();
            return found;
        })`), [true, true, true, true, true, true, true, true, 'a page', 0, 0, 'gn_params_save_memory: the value is on the GPU, for which a page cannot wait: re', true]);
        await p.picture('gpu.png');
        await p.close();
        const start = Date.now();
        for (const [name, more, there] of [['bench', '&only=gpunum-webgpu,gpunum&rows=chain,softmax,small', 'document.body.dataset.ready'],
            ['waves', '', 'Number(document.body.dataset.frames) > 2'], ['mnist', '&batch=8', 'Number(document.body.dataset.steps) > 2']]) {
            if (Date.now() - start > 30000) { // compilers of this machine are slow
                console.log(`WebGPU: no time for ${name}`);
                continue;
            }
            const page = await Page.open(send, `${name}.html?backend=webgpu${more}`);
            await page.until(there, 90);
            assert.match(await page.value("document.getElementById('device').textContent"), /Computes with WebGPU on ./);
            if (name === 'waves') assert.ok((await page.pixels('#water')).colors > 50, 'there is no water');
            for (const [row, gpu, wasm] of name === 'bench' ? await page.value(BARS) : []) {
                console.log(`WebGPU: ${row} ${gpu}, on WebAssembly ${wasm}`);
                assert.match(gpu, /ms$/, `no ${row} on WebGPU`);
            }
            await page.picture(`${name}_gpu.png`);
            await page.close();
        }
    },
    async waves(send) {
        const p = await Page.open(send, 'waves.html');
        await p.until('Number(document.body.dataset.frames) > 30', 60);
        const before = await p.pixels('#water');
        assert.ok(before.colors > 50, `${before.colors} colours of water`);
        await sleep(500);
        const after = await p.pixels('#water');
        assert.notEqual(before.hash, after.hash, 'the water stands still');
        await p.draw('#water', [[[0.3, 0.3], [0.6, 0.6]]]);
        await sleep(700);
        console.log(`waves: ${await p.value("document.getElementById('speed').textContent")}`);
        await p.picture('waves.png');
        await p.close();
    },
    async mnist(send) {
        const p = await Page.open(send, 'mnist.html');
        await p.until('Number(document.body.dataset.steps) > 5', 60);
        const before = await p.pixels('#loss');
        await p.until('Number(document.body.dataset.accuracy) > 0.97', 120);
        assert.notEqual((await p.pixels('#loss')).hash, before.hash, 'the chart stands still');
        for (const [digit, lines] of [[1, ONE], [7, SEVEN], [0, ZERO]]) {
            await p.value("document.getElementById('clear').click()");
            await p.draw('#draw', lines);
            await p.until(`document.getElementById('digit').textContent === '${digit}'`, 10);
        }
        console.log(`mnist: ${await p.value("document.getElementById('speed').textContent")}, ${await p.value("document.getElementById('right').textContent")} right; reads 1, 7 and 0`);
        await p.value("document.getElementById('train').click()");
        await sleep(300);
        const steps = await p.value('document.body.dataset.steps');
        await sleep(300);
        assert.equal(await p.value('document.body.dataset.steps'), steps, 'training goes on behind Pause');
        await p.value('scrollTo(0, 0)');
        await p.picture('mnist.png');
        await p.close();
        const phone = await Page.open(send, 'mnist.html', { width: 360 });
        await phone.until('Number(document.body.dataset.steps) > 5', 60);
        assert.ok(await phone.value('document.documentElement.scrollWidth') <= 360, 'wider than a phone');
        await phone.picture('phone.png');
        await phone.close();
    },
    async bench(send) {
        const p = await Page.open(send, 'bench.html?only=gpunum,gpunum-threads,tfjs,jax');
        await p.until('document.body.dataset.ready', 120);
        const rows = await p.value(BARS);
        for (const [row, mine, threads, ...others] of rows) {
            console.log(`bench: ${row} ${mine}, on all threads ${threads}; tfjs ${others[0]}, jax-js ${others[1]}`);
            assert.match(threads, /ms$/, `gpunum has no ${row} with threads`);
            assert.match(mine, /ms$/, `gpunum has no ${row}`);
        }
        assert.equal(rows.length, 6);
        await p.picture('bench.png');
        await p.close();
    },
};

try {
    const [[, url]] = await Promise.all([said(browser.stderr, /DevTools listening on (ws:\S+)/), said(server.stdout, /http:\/\/localhost/)]);
    const send = await connect(url);
    for (const [name, check] of Object.entries(checks)) {
        await check(send);
        assert.deepEqual(problems, [], name);
    }
    clearTimeout(late);
    end(0);
} catch (e) {
    console.log(e);
    end(1);
}
