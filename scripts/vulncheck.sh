#!/usr/bin/env bash
# Looks for known vulnerabilities that our code reaches. The database is on the
# network: where that is out of reach this says SKIP and succeeds, because a
# build without network must pass. Anything else that goes wrong is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."

output=$(go tool -modfile=tools/vuln/go.mod govulncheck ./... 2>&1)
status=$?
echo "$output"
if [ "$status" -ne 0 ] && grep -q 'fetching vulnerabilities:' <<<"$output"; then
  echo "SKIP: vulnerability check did not run, its database cannot be reached"
  exit 0
fi
exit "$status"
