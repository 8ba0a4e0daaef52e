// Serves these pages on this machine: node examples/web/serve.mjs [--port 8080] [--peers]
//
// What is missing is made first: the library (tools/web/build.sh) and MNIST (tools/fetch_mnist.sh). --peers has npm fetch
// TensorFlow.js and jax-js, which the benchmark page then runs beside gpunum. After that nothing comes from the network.
import { execFileSync } from 'node:child_process';
import { createReadStream, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url)), peers = join(root, 'build/peers');
const at = process.argv.indexOf('--port'), port = at > 0 ? Number(process.argv[at + 1]) : 8080;
const run = (command, args, cwd) => execFileSync(command, args, { cwd, stdio: 'inherit' });

if (!existsSync(join(root, 'build/npm/core.wasm'))) run(join(root, 'tools/web/build.sh'), [], root);
if (!existsSync(join(root, 'data/mnist/train-images-idx3-ubyte'))) run(join(root, 'tools/fetch_mnist.sh'), [], root);
if (process.argv.includes('--peers') && !existsSync(join(peers, 'node_modules'))) {
    mkdirSync(peers, { recursive: true });
    writeFileSync(join(peers, 'package.json'), '{"private": true}');
    run('npm', ['install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts', '@tensorflow/tfjs@4',
        '@tensorflow/tfjs-backend-wasm@4', '@tensorflow/tfjs-backend-webgpu@4', '@jax-js/jax'], peers);
}

const folders = { '/gpunum/': 'build/npm/', '/mnist/': 'data/mnist/', '/peers/': 'build/peers/node_modules/', '/check/': 'build/npm.work/', '/': 'examples/web/' };
const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.mjs': 'text/javascript', '.css': 'text/css',
    '.wasm': 'application/wasm', '.svg': 'image/svg+xml', '.png': 'image/png' };

function answer(request, response) {
    let path = normalize(decodeURIComponent(new URL(request.url, 'http://x').pathname));
    if (path.endsWith('/')) path += 'index.html';
    const under = Object.keys(folders).find(p => path.startsWith(p));
    const file = join(root, folders[under], path.slice(under.length));
    if (path.includes('..') || path.includes('\0') || !existsSync(file) || !statSync(file).isFile()) {
        response.writeHead(404, { 'Content-Type': 'text/plain' }).end('not here\n');
        return;
    }
    // Who sends these two (COOP and COEP) has pages that may share memory with workers: threads.
    const shares = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };
    response.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream', 'Content-Length': statSync(file).size,
        'Cache-Control': 'no-cache', ...shares });
    createReadStream(file).pipe(response);
}

createServer((request, response) => {
    try {
        answer(request, response);
    } catch {
        response.writeHead(400).end();
    }
}).listen(port, 'localhost', () => console.log(`http://localhost:${port}/`));
