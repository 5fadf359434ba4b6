#!/usr/bin/env bash
# Fails when the command that generates changes a file: bash scripts/generated-fresh.sh COMMAND...
#
# What is generated must be committed together with what it is generated from. It compares the
# work tree with itself, not with the last commit, so that it is of use before a commit too.
set -euo pipefail
cd "$(dirname "$0")/.."

# fingerprint prints a line per file of the project, ignored files left out.
fingerprint() {
  git ls-files --cached --others --exclude-standard -z |
    xargs -0 --no-run-if-empty sha256sum 2>/dev/null | sort -k 2 || true
}

before=$(fingerprint)
"$@"
after=$(fingerprint)
if [ "$before" != "$after" ]; then
  echo "stale, run 'make generate' and commit:" >&2
  diff <(echo "$before") <(echo "$after") | awk '{print "  " $3}' | sort -u >&2
  exit 1
fi
echo "generated files are fresh"
