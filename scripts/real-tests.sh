#!/usr/bin/env bash
# Runs the tests that start programs: bash scripts/real-tests.sh "MODULE ..." [FLAG ...]
#
# In this module they are in files with the build tag real. What they are called is read from
# these files: there is no second list. The other modules have no other tests. Tests that need
# a program which is missing are one SKIP line, and fail with CI=true. See go-test.sh for what
# becomes of a test that fails, and for EVENTS.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
modules=$1
shift
AGAIN=$(mktemp) || exit 1
export AGAIN
trap 'rm -f "$AGAIN"' EXIT
status=0

# The other modules run beside this one: their tests mostly wait, for elections and for a browser.
said=$(mktemp) && again=$(mktemp) || exit 1
trap 'rm -f "$AGAIN" "$said" "$again"; [ -z "$(jobs -p)" ] || kill $(jobs -p)' EXIT
AGAIN=$again EVENTS='' bash scripts/go-test.sh "$modules" "$@" >"$said" 2>&1 &
beside=$!

files=$(git ls-files --cached --others --exclude-standard '*_test.go' | xargs grep -lE '^//go:build .*\breal\b')
tests=$(xargs sed -nE 's/^func (Test[A-Za-z0-9_]*)\(.*/\1/p' <<<"$files" | grep -vx TestMain | sort -u | paste -sd '|')
[ -n "$tests" ] || { echo "no file has the build tag real: is this a clone with git?" >&2; exit 1; }
# The clients and libraries of compat_test take as long as half of the others, so they begin.
packages=$(xargs -n 1 dirname <<<"$files" | sort -u | sed 's|^|./|' | paste -sd ' ')
PACKAGES="./compat_test $packages" bash scripts/go-test.sh . -tags real -run "^($tests)\$" "$@" || status=1
wait "$beside" || status=1

cat "$said" "$AGAIN" "$again"
exit $status
