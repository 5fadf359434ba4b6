#!/usr/bin/env bash
# Runs a command again and again on a machine that is busy and stands still now and then, as
# shared machines do: bash scripts/steady.sh TIMES COMMAND...
#
# BUSY processes (default 20) take the processors meanwhile. Every PERIOD seconds (default 15)
# all processes of the command stop for HALT seconds (default 2), except those that a test has
# stopped. A test that fails then fails by chance. The script prints what failed, and ends with the number of failed runs.
set -uo pipefail
# A result that go test remembers proves nothing.
GOFLAGS="$(go env GOFLAGS) -count=1"
export GOFLAGS
times=$1
shift
log=$(mktemp) || exit 1
busy=()
stopper='' run=''

# shellcheck disable=SC2317 # the trap calls it
cleanup() {
  [ -z "$stopper" ] || kill "$stopper" 2>/dev/null
  [ -z "$run" ] || { pkill -CONT -s "$run"; pkill -s "$run"; }
  [ ${#busy[@]} -eq 0 ] || kill "${busy[@]}" 2>/dev/null
  rm -f "$log"
} 2>/dev/null
trap cleanup EXIT
trap 'exit 130' INT TERM

for _ in $(seq "${BUSY:-20}"); do
  (while :; do :; done) &
  busy+=($!)
done

failed=0
for round in $(seq "$times"); do
  began=$SECONDS
  setsid "$@" >"$log" 2>&1 </dev/null &
  run=$!
  (
    while sleep "${PERIOD:-15}"; do
      mapfile -t running < <(ps -o pid=,stat= -s "$run" | awk '$2 !~ /^[TZ]/ { print $1 }')
      kill -STOP "${running[@]}" 2>/dev/null
      sleep "${HALT:-2}"
      kill -CONT "${running[@]}" 2>/dev/null
    done
  ) &
  stopper=$!
  if wait "$run"; then result=passed; else result=FAILED; fi
  kill "$stopper"
  pkill -CONT -s "$run"
  run='' stopper=''
  echo "round $round: $result in $((SECONDS - began)) s"
  [ "$result" = passed ] || failed=$((failed + 1))
  # What passed on a second run failed on the first, too.
  if grep '^passed on a second run: ' "$log" || [ "$result" = FAILED ]; then
    grep -E -A30 '^(=== FAIL|--- FAIL|panic:|FAIL)' "$log" | head -200
  fi
done
echo "$failed of $times rounds failed"
exit $((failed > 0))
