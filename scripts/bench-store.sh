#!/usr/bin/env bash
# Measures cellserver --store beside redis_rate on the same cluster of three nodes, which it
# starts on loopback: bash scripts/bench-store.sh [OPTION...]
#
# A full run takes about six minutes and writes docs/scale-out-performance.md. Options are
# those of storebench, such as --rounds 1 --span 1s --only hot --out bin/look.md. It needs
# redis-benchmark, and valkey-server or redis-server (make setup).
set -euo pipefail
cd "$(dirname "$0")/.."
make build
CGO_ENABLED=0 go -C tools/bench build -trimpath -o "$PWD/bin/storebench" ./storebench
exec bin/storebench --out docs/scale-out-performance.md "$@"
