#!/usr/bin/env bash
# Installs what the tests need beside Go: bash scripts/ci-setup.sh
#
# As root on Debian it installs missing programs with apt. The libraries of the
# client programs go below compat_test/clients, at the versions pinned there:
# python/.venv, node/node_modules and java/target; the limiter libraries likewise
# below compat_test/libraries. What is there already and
# newer than its pins is left alone, so a second run takes no time.
#
# Without CI=true a thing that cannot be had is one SKIP line, and the tests
# that need it are skipped too; with CI=true it makes this script fail.
set -uo pipefail
cd "$(dirname "$0")/../compat_test/clients" || exit 1
failed=0

# give_up REASON
give_up() {
  echo "SKIP: $1" >&2
  [ "${CI:-}" = true ] && failed=1
  return 0
}

# attempt COMMAND... tries three times, since a registry may be busy.
attempt() {
  local try
  for try in 1 2 3; do
    "$@" </dev/null && return 0
    [ "$try" = 3 ] || sleep $((try * 3))
  done
  return 1
}

# stale STAMP INPUT... tells whether STAMP is missing or older than any input.
stale() {
  local stamp=$1
  shift
  [ ! -e "$stamp" ] || [ -n "$(find "$@" -type f -newer "$stamp" -print -quit)" ]
}

# have COMMAND...
have() {
  local name
  for name in "$@"; do command -v "$name" >/dev/null || return 1; done
}

# install_packages PACKAGE... Redis is wanted as a program to measure against, not as a
# service that takes the default port: policy-rc.d keeps it from being started.
install_packages() {
  local policy=/usr/sbin/policy-rc.d own='' status=0
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && own=yes
  fi
  export DEBIAN_FRONTEND=noninteractive
  { attempt apt-get -qq -o DPkg::Lock::Timeout=120 update &&
    attempt apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$@"; } \
    >/dev/null || status=1
  [ -n "$own" ] && rm -f "$policy"
  return $status
}

programs() {
  local missing=()
  have redis-cli redis-benchmark || missing+=(redis-tools)
  have redis-server || missing+=(redis-server)
  have script || missing+=(bsdutils)
  have python3 && python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
  have node || missing+=(nodejs)
  have npm || missing+=(npm)
  have javac || missing+=(openjdk-17-jdk-headless)
  have mvn || missing+=(maven)
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" != 0 ] || ! have apt-get; then
    give_up "not installed, and this is not root on Debian: ${missing[*]}"
    return
  fi
  echo "installing ${missing[*]}"
  install_packages "${missing[@]}" || give_up "apt could not install ${missing[*]}"
}

# python_client PINS installs one version of redis-py, or coredis, into an environment of its own.
python_client() {
  local venv=.venv/$1 pins=requirements-$1.txt
  stale "$venv/.installed" "$pins" || return 0
  have python3 || { give_up "no python3 for the Python client $1"; return; }
  echo "installing the Python client $1"
  rm -rf "$venv"
  python3 -m venv "$venv" &&
    attempt "$venv/bin/pip" install -q --disable-pip-version-check --no-deps -r "$pins" &&
    touch "$venv/.installed" || give_up "the Python client $1 could not be installed"
}

node_clients() {
  stale node_modules/.installed package.json package-lock.json || return 0
  have node npm || { give_up "no node and npm for ioredis and node-redis"; return; }
  echo "installing the Node clients"
  attempt npm ci --loglevel=error --ignore-scripts >/dev/null &&
    touch node_modules/.installed || give_up "the Node clients could not be installed"
}

java_clients() {
  stale target/.installed pom.xml src || return 0
  have javac mvn || { give_up "no JDK and Maven for Jedis and Lettuce"; return; }
  echo "compiling the Java clients"
  rm -rf target
  # Maven colours even what it does not print.
  attempt mvn -B -q -ntp compile 2>&1 | sed $'s/\x1b\\[[0-9;]*m//g' &&
    touch target/.installed || give_up "the Java clients could not be compiled"
}

go_clients() {
  have go || { give_up "no go for go-redis and rueidis"; return; }
  GOWORK=off attempt go mod download || give_up "the Go clients could not be downloaded"
}

# within DIR COMMAND... runs COMMAND in the folder of one language.
within() {
  local back=$PWD
  cd "$1" || exit 1
  shift
  "$@"
  cd "$back" || exit 1
}

programs
within python python_client 8
within python python_client 5
within python python_client coredis
within node node_clients
within java java_clients
within go go_clients

# Each language of compat_test/libraries installs itself, with the functions above.
cd ../libraries || exit 1
for language in */; do
  # shellcheck disable=SC1091
  [ ! -e "$language/install.sh" ] || within "$language" source ./install.sh
done
exit $failed
