#!/usr/bin/env bash
# Builds what a registry gets of a package for callers, after make setup:
#
#   bash scripts/package-build.sh clients/python dist/package
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1-} out=${2-}
[ -n "$out" ] || {
  echo "usage: package-build.sh clients/LANGUAGE DIRECTORY" >&2
  exit 1
}
mkdir -p "$out"
out=$(cd "$out" && pwd)
case $folder in
clients/python) (cd "$folder" && .venv/bin/python -m build --no-isolation --outdir "$out" .) ;;
clients/node) (cd "$folder" && npm pack --pack-destination "$out") ;;
clients/go) ;; # its tag is all that the module proxy needs
*)
  echo "'$folder' is not a package for callers" >&2
  exit 1
  ;;
esac
