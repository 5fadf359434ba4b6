#!/usr/bin/env bash
# Runs the tests that start programs: bash scripts/real-tests.sh "TOOL ..." "MODULE ..." [FLAG ...]
#
# In this module and in those of the tools they are in files with the build tag real. What they are
# called is read from these files: there is no second list. The other modules have no other tests. Tests that need
# a program which is missing are one SKIP line, and fail with CI=true. See go-test.sh for what
# becomes of a test that fails, and for EVENTS.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
tools=$1 modules=$2
shift 2
AGAIN=$(mktemp) || exit 1
export AGAIN
trap 'rm -f "$AGAIN"' EXIT
status=0

# The other modules run beside this one: their tests mostly wait, for elections and for a browser.
said=$(mktemp) && again=$(mktemp) || exit 1
# A run that is stopped shows what the other modules have printed until then: otherwise the module
# that did not end would remain unknown.
shown=
ended() {
  [ -z "$(jobs -p)" ] || kill $(jobs -p)
  [ -n "$shown" ] || { echo "stopped; until now the tests of other modules have printed:" && cat "$said"; }
  rm -f "$AGAIN" "$said" "$again"
}
trap ended EXIT
trap 'trap "" TERM; exit 143' TERM # the signal may come from make and from timeout
beside() {
  local status=0 tool
  bash scripts/go-test.sh "$modules" "$@" || status=1
  for tool in $tools; do
    tagged "$tool"
    [ -z "$tests" ] || PACKAGES=$packages bash scripts/go-test.sh "$tool" -tags real -run "^($tests)\$" "$@" || status=1
  done
  exit $status
}

# tagged MODULE sets tests and packages to those of the files with the tag in a module, without the modules in its folders.
tagged() {
  local files nested
  nested=$(cd "$1" && git ls-files --cached --others --exclude-standard '*/go.mod' | xargs -r -n 1 dirname | sed 's|^|:!|')
  # shellcheck disable=SC2086 # one pattern for each word
  files=$(cd "$1" && git ls-files --cached --others --exclude-standard '*_test.go' $nested | xargs grep -lE '^//go:build .*\breal\b')
  tests=$(cd "$1" && xargs -r sed -nE 's/^func (Test[A-Za-z0-9_]*)\(.*/\1/p' <<<"$files" | grep -vx TestMain | sort -u | paste -sd '|')
  packages=$(xargs -r -n 1 dirname <<<"$files" | sort -u | sed 's|^|./|' | paste -sd ' ')
}

AGAIN=$again EVENTS='' beside "$@" >"$said" 2>&1 &
beside=$!

tagged .
[ -n "$tests" ] || { echo "no file has the build tag real: is this a clone with git?" >&2; exit 1; }
# The clients and libraries of compat_test take as long as half of the others, so they begin.
PACKAGES="./compat_test $packages" bash scripts/go-test.sh . -tags real -run "^($tests)\$" "$@" || status=1
wait "$beside" || status=1

shown=1
cat "$said" "$AGAIN" "$again"
exit $status
