#!/usr/bin/env bash
# Runs every fuzz target of the modules for the given time each (default 10s).
# `go test -fuzz` takes one target of one package at a time, hence the loop.
set -euo pipefail
cd "$(dirname "$0")/.."

each=${1:-10s}
targets=0
for module in . tools/bench clients/go; do
  for package in $(go -C "$module" list ./...); do
    for target in $(go -C "$module" test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
      echo "== $package $target"
      go -C "$module" test -run '^$' -fuzz "^$target\$" -fuzztime "$each" "$package"
      targets=$((targets + 1))
    done
  done
done
if [ "$targets" -eq 0 ]; then
  echo "no fuzz target was found" >&2
  exit 1
fi
echo "$targets fuzz targets ran for $each each"
