#!/usr/bin/env bash
# Takes the rules of time zones from the Go distribution, whose lib/time has a release of tzdata in a
# zip archive: calendar/tzdata.zip has the same bytes, and calendar/RELEASE the name of the release.
#
#	scripts/tzdata.sh           take them, and record what Python's zoneinfo computes from them
#	scripts/tzdata.sh --check   say whether both are those of this Go
set -euo pipefail
cd "$(dirname "$0")/.."
from=$(go env GOROOT)/lib/time
release=$(sed -n 's/^DATA=//p' "$from/update.bash")
ours=$(cat calendar/RELEASE)

if [ "${1:-}" = --check ]; then
	if [ "$release" != "$ours" ]; then
		echo "calendar has tzdata $ours, and this Go has $release: make tzdata takes that"
	elif cmp "$from/zoneinfo.zip" calendar/tzdata.zip; then
		echo "calendar has tzdata $ours, as this Go"
	else
		exit 1
	fi
	exit 0
fi
cp "$from/zoneinfo.zip" calendar/tzdata.zip
echo "$release" >calendar/RELEASE
python3 calendar/testdata/boundaries.py
