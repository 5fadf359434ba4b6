#!/usr/bin/env bash
# mutants.sh [NAME ...] breaks the product on purpose, by each patch of
# internal/simulation/mutations or those named, and prints how long the simulator takes to find
# it. It fails if one is not found within LIMIT (default 60s). The tree is not touched: go gets
# the changed files as an overlay.
set -euo pipefail
cd "$(dirname "$0")/.."
limit=${LIMIT:-60s}
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ $# -eq 0 ]; then
	for patch in internal/simulation/mutations/*.patch; do
		set -- "$@" "$(basename "$patch" .patch)"
	done
fi
missed=0
TIMEFORMAT="%R %U"
echo "| mutation | invariant | seed | seconds | of a processor |"
echo "|---|---|--:|--:|--:|"
for name in "$@"; do
	patch=$root/internal/simulation/mutations/$name.patch
	tree=$work/$name
	replace=
	for file in $(sed -n 's,^+++ b/,,p' "$patch"); do
		mkdir -p "$tree/$(dirname "$file")"
		cp "$file" "$tree/$file"
		replace+="${replace:+,}\"$root/$file\":\"$tree/$file\""
	done
	(cd "$tree" && GIT_CEILING_DIRECTORIES=$work git apply "$patch")
	echo "{\"Replace\":{$replace}}" >"$tree/overlay.json"
	${GO:-go} test -c -overlay "$tree/overlay.json" -o "$tree/test" ./internal/simulation
	found=no
	play() { (cd internal/simulation && "$tree/test" -test.run TestSeeds -test.timeout 10m -from "${FROM:-0}" -spend "$limit") >"$tree/out" 2>&1; }
	{ time play || found=yes; } 2>"$tree/time"
	invariant=$(sed -n 's/^ *BROKEN HERE: \([a-z]*\) of seed .*/\1/p' "$tree/out" | head -1)
	seed=$(sed -n 's/^ *BROKEN HERE: .* of seed \([0-9]*\).*/\1/p' "$tree/out" | head -1)
	if [ $found = no ]; then
		invariant="not found" missed=$((missed + 1))
	elif [ -z "$invariant" ]; then
		invariant="the test itself"
		seed=$(sed -n 's/.*seed \([0-9]*\): replicas.*/\1/p' "$tree/out" | head -1)
	fi
	read -r wall cpu <"$tree/time"
	echo "| $name | $invariant | $seed | $wall | $cpu |"
	[ -z "${KEEP:-}" ] || cp "$tree/out" "$KEEP/$name.txt"
done
exit $((missed > 0))
