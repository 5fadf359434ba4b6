#!/usr/bin/env bash
# Prints the packages that can race: those that start goroutines, in their tests or outside of
# them, or whose tests start whole servers. Locks alone are no reason: without a second goroutine
# the race detector has nothing to compare.
set -euo pipefail
cd "$(dirname "$0")/.."
files='{{$d := .Dir}}{{range .GoFiles}} {{$d}}/{{.}}{{end}}{{range .TestGoFiles}} {{$d}}/{{.}}{{end}}{{range .XTestGoFiles}} {{$d}}/{{.}}{{end}}'
go list -f "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}$files{{end}}" ./... | while read -r dir files; do
  # shellcheck disable=SC2086 # names without blanks
  if grep -qE '^\s*go (func|[a-zA-Z_.]+)\(|\.Go\(|^[^"`]*\binproc\.(Bubble|Serve|ServeWith|EachTransport|Start[A-Za-z]*)\(' $files; then
    echo "./${dir#"$PWD"/}"
  fi
done
