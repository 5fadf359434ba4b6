#!/usr/bin/env bash
# Builds redis-cell 0.2.2, the last version in the crate registry, to be measured
# beside ours, and prints the path of the module. The build is kept in the user's
# cache. It is for speed only: its rounding is not that of later versions.
set -euo pipefail

version=0.2.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cellserver-bench/redis-cell-$version
module=$cache/libredis_cell.so

if [ ! -e "$module" ]; then
  command -v cargo >/dev/null || { echo "there is no cargo" >&2; exit 1; }
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # The crate is a library that cargo does not install, so a package that depends
  # on it has it fetched, and it is built from its own source.
  mkdir -p "$work/fetch/src" "$cache"
  echo 'fn main() {}' >"$work/fetch/src/main.rs"
  printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nredis-cell = "=%s"\n' "$version" \
    >"$work/fetch/Cargo.toml"
  (cd "$work/fetch" && cargo vendor --quiet "$work/vendor" >/dev/null)
  cp -r "$work/vendor/redis-cell" "$work/redis-cell"
  (cd "$work/redis-cell" && cargo build --quiet --release 2>"$work/log") || { tail -5 "$work/log" >&2; exit 1; }
  cp "$work"/redis-cell/target/release/libredis_cell.* "$cache/"
fi
echo "$module"
