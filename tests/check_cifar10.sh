#!/bin/sh
# Runs examples/cifar10 for a moment on made-up images: it learns, and training that stopped goes on to the same bits.
#
#   check_cifar10.sh PROGRAM
set -eu
program=$1
mkdir -p whole parts
train() {
    "$program" --backend cpu --net small --made-up 60 --batch 20 --lr 0.05 --epochs 3 --no-progress "$@"
}
train --save whole | tee log
train --save parts --stop 2
train --save parts --resume
cmp whole/cifar10.safetensors parts/cifar10.safetensors
cmp whole/cifar10.svg parts/cifar10.svg
[ "$(grep -c '<polyline' whole/cifar10.svg)" = 2 ]
mkdir -p mixed
train --save mixed --precision bf16 | tee log.mixed
for log in log log.mixed; do
    first=$(sed -n 's/^epoch 1.* loss \([0-9.]*\) .*/\1/p' $log)
    last=$(sed -n 's/^epoch 3.* loss \([0-9.]*\) .*/\1/p' $log)
    awk -v a="$first" -v b="$last" 'BEGIN { exit !(a > 1.5 && b < a - 0.2) }' || { echo "the loss went from $first to $last"; exit 1; }
done
