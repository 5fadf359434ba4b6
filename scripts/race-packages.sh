#!/usr/bin/env bash
# Prints the packages that can race: those that start goroutines, in their tests or outside of
# them, or that have locks. Whatever else there is runs in one goroutine.
set -euo pipefail
cd "$(dirname "$0")/.."
go list -f '{{.Dir}}' ./... | while read -r dir; do
  if grep -qE '^\s*go [a-zA-Z_(]|\.Go\(func|"sync(/atomic)?"|\bt\.Parallel\(|internal/(inproc|simnet|remotedouble)"' "$dir"/*.go; then
    echo "./${dir#"$PWD"/}"
  fi
done
