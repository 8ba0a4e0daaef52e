// Trains, and between steps answers what a drawn digit is.
import { open } from './gpunum/gpunum.js';
import { backend, threads } from './page.js';

const CHANNELS = [1, 6, 16], SIZES = [16 * 7 * 7, 64, 10];
const BATCH = Number(new URLSearchParams(location.search).get('batch') ?? 128);

async function idx(g, name) {
    const answer = await fetch(`mnist/${name}`);
    if (!answer.ok) throw new Error(`no ${name}: run tools/fetch_mnist.sh`);
    return g.loadIdx(await answer.arrayBuffer());
}

async function main() {
    const g = await open({ seed: 1, backend, threads });
    postMessage({ device: g.device });
    const [x, labels, tx, testLabels] = await Promise.all(['train-images-idx3-ubyte', 'train-labels-idx1-ubyte', 't10k-images-idx3-ubyte',
        't10k-labels-idx1-ubyte'].map(name => idx(g, name)));
    const images = x.expandDims(1), testImages = tx.expandDims(1);
    const bias = n => g.zeros([n]).requiresGrad();
    const convs = [0, 1].map(i => ({ w: g.heNormal([CHANNELS[i + 1], CHANNELS[i], 5, 5]), b: bias(CHANNELS[i + 1]) }));
    const [hidden, last] = [0, 1].map(i => ({ w: g.heNormal([SIZES[i], SIZES[i + 1]]), b: bias(SIZES[i + 1]) }));
    const optimizer = g.adam([...convs, hidden, last].flatMap(l => [l.w, l.b]), { lr: 2e-3 });
    const forward = batch => {
        const h = convs.reduce((h, l) => h.conv2d(l.w, l.b, { same: true }).relu().maxPool2d(2), batch);
        return h.reshape([-1, SIZES[0]]).linear(hidden.w, hidden.b).relu().linear(last.w, last.b);
    };
    const pixels = a => a.cast('f32').div(255);

    let running = true, order = null, at = 0, steps = 0;
    const digits = [];
    self.onmessage = ({ data }) => {
        if (data.run !== undefined) running = data.run;
        if (data.digit) digits.push(data.digit);
    };
    const step = () => g.scope(() => {
        const batch = order.slice(0, at, at + BATCH, 1);
        const loss = forward(pixels(images.take(batch, 0))).crossEntropy(labels.take(batch, 0).cast('i32'));
        optimizer.zeroGrads();
        loss.backward();
        optimizer.step();
        at += BATCH;
        steps++;
        return loss;
    });
    // Values come as promises: a page cannot wait for a GPU.
    const values = async arrays => {
        const found = await Promise.all(arrays.map(a => a.read()));
        for (const a of arrays) a.dispose();
        return found;
    };
    const accuracy = async () => {
        const [guess, right] = await values(g.scope(() => g.noGrad(() => {
            const picked = g.randint([2000], 0, 10000, 'i32');
            return [forward(pixels(testImages.take(picked, 0))).argmax(-1), testLabels.take(picked, 0)];
        })));
        return right.filter((r, i) => r === Number(guess[i])).length / right.length;
    };
    const chances = async digit => [...(await values([g.scope(() => g.noGrad(() => forward(g.array(digit, [1, 1, 28, 28])).softmax()))]))[0]];

    let many = 1; // steps at a time
    for (;;) {
        if (digits.length > 0) postMessage({ chances: await chances(digits.splice(0).pop()) });
        if (running) {
            const start = performance.now(), before = steps, list = [];
            for (let i = 0; i < many; i++) {
                if (order === null || at + BATCH > 60000) {
                    order?.dispose();
                    order = g.permutation(60000, 'i32');
                    at = 0;
                }
                list.push(step());
            }
            const losses = (await values(list)).map(l => l[0]), ms = performance.now() - start;
            postMessage({ losses, steps, batch: BATCH, ms: ms / many });
            many = Math.max(1, Math.min(2 * many, Math.round(many * 60 / ms)));
            if (Math.floor(steps / 50) > Math.floor(before / 50)) postMessage({ accuracy: await accuracy() });
        }
        await new Promise(done => setTimeout(done, running ? 0 : 30)); // messages arrive here
    }
}
main().catch(e => postMessage({ error: String(e) }));
