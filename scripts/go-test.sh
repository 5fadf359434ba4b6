#!/usr/bin/env bash
# Runs go test in several modules: bash scripts/go-test.sh "MODULE ..." [FLAG ...]
#
# A test that fails is run up to twice more, unless more than six fail in its module: so many
# do not fail by chance. A data race, a panic and a time-out are never run again. A test that
# passes only then does not fail the run. It is listed at the very end, as "passed on a second
# run: ...", and is a fault to be repaired. A program of tests that ended before all of them had
# fails the run in any case: the tests after that would not run at all.
#
# PACKAGES names the packages of the first module (default ./..., as of the others). EVENTS names
# a file that receives the events of go test -json of the first module. AGAIN names a file that
# receives the list instead, if more tests follow.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=$PWD
modules=$1
shift
report=$(mktemp) || exit 1
events=$(mktemp) || exit 1
again=${AGAIN:-$(mktemp)} || exit 1
trap 'rm -f "$report" "$events"; [ -n "${AGAIN:-}" ] || rm -f "$again"' EXIT
status=0

# broken prints the packages that failed although none of their tests did, or without a result of
# each test that had begun. gotestsum would be content if what it runs again then passes.
broken() {
  awk -F '"' '
    $6 != "Action" || $10 != "Package" { next }
    $8 == "start" { begun[$12] = failed[$12] = 0 }
    $14 == "Test" && $8 == "run" { begun[$12]++ }
    $14 == "Test" && $8 ~ /^(pass|fail|skip)$/ { begun[$12]--; failed[$12] += $8 == "fail" }
    $14 != "Test" && $8 == "fail" && (begun[$12] > 0 || !failed[$12]) { print $12 }' "$1" | sort -u
}

for module in $modules; do
  : >"$report"
  : >"$events"
  (cd "$root/$module" && ${GO:-go} tool -modfile="$root/tools/go.mod" gotestsum \
    --format standard-quiet --hide-summary skipped \
    --rerun-fails=2 --rerun-fails-max-failures=6 --rerun-fails-run-root-test \
    --rerun-fails-abort-on-data-race --rerun-fails-report="$report" \
    --jsonfile="$events" --packages="${PACKAGES:-./...}" -- "$@") || status=1
  if [ -n "$(broken "$events")" ]; then
    broken "$events" | sed 's/^/ended before its tests had, or failed without one: /'
    status=1
  fi
  [ -z "${EVENTS:-}" ] || cp "$events" "$EVENTS"
  unset EVENTS PACKAGES
  # A line of the report is "PACKAGE.TEST: 2 runs, 1 failures". A subtest runs again with its
  # test, which has a line of its own.
  while read -r name runs _ failures _; do
    [[ ! $name =~ \.(Test|Fuzz|Example)[^/]*/ ]] || continue
    [ "${runs:-0}" -gt "${failures:-0}" ] && echo "passed on a second run: ${name%:}" >>"$again"
  done <"$report"
done

[ -n "${AGAIN:-}" ] || cat "$again"
exit $status
