#!/usr/bin/env bash
# Checks the tag of a package before it is published, and prints its folder:
#
#   bash scripts/package-version.sh clients/python/v0.2.0
#
# The version of the tag must be the one that the package states, and its changelog must have a section for it.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "$*" >&2
  exit 1
}

tag=${1-}
[[ $tag =~ ^clients/(python|node|go)/v([0-9]+\.[0-9]+\.[0-9]+)$ ]] ||
  fail "'$tag' is not a tag of a package, such as clients/python/v0.2.0"
folder=clients/${BASH_REMATCH[1]} version=${BASH_REMATCH[2]}

case $folder in
clients/python) states=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$folder/src/cellserver_client/__init__.py") ;;
clients/node) states=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$folder/package.json") ;;
clients/go) states=$version ;; # a module has the version of its tag
esac
[ "$states" = "$version" ] || fail "$folder states version $states, not $version"
grep -q "^## \[\?${version//./\\.}\b" "$folder/CHANGELOG.md" || fail "$folder/CHANGELOG.md has no section for $version"
echo "$folder"
