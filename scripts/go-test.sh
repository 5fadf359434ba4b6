#!/usr/bin/env bash
# Runs go test in several modules: bash scripts/go-test.sh "MODULE ..." [FLAG ...]
#
# A test that fails is run up to twice more, unless more than six fail in its module: so many
# do not fail by chance. A data race, a panic and a time-out are never run again. A test that
# passes only then does not fail the run. It is listed at the very end, as "passed on a second
# run: ...", and is a fault to be repaired.
#
# PACKAGES names the packages of every module (default ./...). TIMES names a file that receives
# the events of go test -json of the first module. AGAIN names a file that receives the list
# instead, if more tests follow.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=$PWD
modules=$1
shift
report=$(mktemp) || exit 1
again=${AGAIN:-$(mktemp)} || exit 1
trap 'rm -f "$report"; [ -n "${AGAIN:-}" ] || rm -f "$again"' EXIT
status=0

for module in $modules; do
  : >"$report"
  (cd "$root/$module" && ${GO:-go} tool -modfile="$root/tools/go.mod" gotestsum \
    --format standard-quiet --hide-summary skipped \
    --rerun-fails=2 --rerun-fails-max-failures=6 --rerun-fails-run-root-test \
    --rerun-fails-abort-on-data-race --rerun-fails-report="$report" \
    ${TIMES:+--jsonfile="$TIMES"} --packages="${PACKAGES:-./...}" -- "$@") || status=1
  unset TIMES
  # A line of the report is "PACKAGE.TEST: 2 runs, 1 failures". A subtest runs again with its
  # test, which has a line of its own.
  while read -r name runs _ failures _; do
    [[ ! $name =~ \.(Test|Fuzz|Example)[^/]*/ ]] || continue
    [ "${runs:-0}" -gt "${failures:-0}" ] && echo "passed on a second run: ${name%:}" >>"$again"
  done <"$report"
done

[ -n "${AGAIN:-}" ] || cat "$again"
exit $status
