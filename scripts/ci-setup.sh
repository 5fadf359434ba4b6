#!/usr/bin/env bash
# Installs what the tests need beside Go: bash scripts/ci-setup.sh
#
# It first says what is missing and how large it is. Programs are Debian packages, which
# need root: a terminal is asked, CI=true agrees, and everybody else is told the one
# command to run. The libraries of the client programs go below compat_test/clients, at
# the versions pinned there: python/.venv, node/node_modules and java/target; the limiter
# libraries likewise below compat_test/libraries, and what the packages for callers are tested
# with below clients. What is there already and newer than its pins is left alone, so a second
# run takes no time.
#
# Without CI=true a thing that cannot be had is one SKIP line, and the tests
# that need it are skipped too; with CI=true it makes this script fail.
set -uo pipefail
case ${1-} in
  '') ;;
  -h | --help) # the comment above
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  *)
    printf 'ci-setup.sh takes no argument but --help: %s\n' "$1" >&2
    exit 2
    ;;
esac
cd "$(dirname "$0")/../compat_test/clients" || exit 1
failed=0

# Everything below runs twice: first with pass=plan, which notes what there is to do, then
# with pass=install, which does it. Sizes are what is needed on disk, in MB, as measured on
# Debian 12.
pass=plan
plan='' size=0
packages='' package_size=0

# planned MB WHAT notes in the first pass that WHAT will be installed, and is true then.
planned() {
  [ "$pass" = plan ] || return 1
  plan+=$(printf '%6d MB  %s' "$1" "$2")$'\n'
  size=$((size + $1))
}

# packaged MB PACKAGE... notes in the first pass that programs are missing.
packaged() {
  [ "$pass" = plan ] || return 0
  package_size=$((package_size + $1))
  shift
  local name
  for name in "$@"; do
    [[ "$packages " == *" $name "* ]] || packages+=" $name"
  done
}

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
  local policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d} own='' status=0
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

# Debian 12 has Valkey in its backports only, which no machine looks for packages in by
# default. Nothing else is taken from there: what is there has a lower priority.
source_file=${SOURCES_D:-/etc/apt/sources.list.d}/bookworm-backports.list

# source_line is the line that tells apt of them, on the server that it has Debian 12 from.
source_line() {
  local archive=''
  read -r archive < <(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Created-By: Packages' 2>/dev/null)
  [ -n "$archive" ] && echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive bookworm-backports main"
}

# needs_source tells whether Valkey is wanted and apt has to be told where it is.
needs_source() {
  [[ "$packages " == *" valkey-server "* ]] && [ ! -e "$source_file" ] || return 1
  have apt-cache && apt-cache show valkey-server >/dev/null 2>&1 && return 1
  # shellcheck disable=SC1090
  [ "$(. "${OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${VERSION_CODENAME:-}")" = bookworm ] && source_line >/dev/null
}

# valkey notes that there is no Valkey, neither installed nor built in VALKEY_DIR.
valkey() {
  have valkey-server || [ -x "${VALKEY_DIR:-/nonexistent}/src/valkey-server" ] || packaged 7 valkey-server
}

# programs notes which programs are missing.
programs() {
  have redis-cli redis-benchmark redis-server || packaged 10 redis-tools redis-server
  valkey
  have script || packaged 1 bsdutils
  have chromium-headless-shell || [ -n "${CELL_BROWSER:-}" ] || packaged 290 chromium-headless-shell
  have python3 && python3 -c 'import ensurepip' 2>/dev/null || packaged 30 python3-venv
  have node || packaged 90 nodejs
  have npm || packaged 130 npm
  have javac || packaged 220 openjdk-17-jdk-headless
  have mvn || packaged 90 maven
  judges
}

# judges notes which programs are missing that tell whether packages and files for operators are right.
judges() {
  have buildah || packaged 60 buildah
  have promtool || packaged 100 prometheus
  have prometheus-redis-exporter || packaged 9 prometheus-redis-exporter
  have systemd-analyze || packaged 10 systemd
  have strace || packaged 3 strace
  have openssl || packaged 2 openssl
  have mandoc || packaged 2 mandoc
  have zsh || packaged 20 zsh
  have fish || packaged 15 fish
  have shellcheck || packaged 30 shellcheck
  have nginx || [ -x /usr/sbin/nginx ] || packaged 6 nginx
  have haproxy || [ -x /usr/sbin/haproxy ] || packaged 5 haproxy
  have caddy || packaged 36 caddy
}

# announce says what the first pass has noted.
announce() {
  echo "The tests of real clients need what this machine lacks (\`make test\` does without them):"
  printf '%s' "$plan"
  [ -z "$packages" ] || printf '%6d MB  Debian packages:%s\n' "$package_size" "$packages"
  needs_source && echo "           (valkey-server from bookworm-backports, for which $source_file is written)"
  echo "About $((size + package_size)) MB in all, below compat_test and clients and in the caches of pip, npm, Maven, Go and cargo."
}

# ask_for_packages installs the packages if it may.
ask_for_packages() {
  [ -n "$packages" ] || return 0
  local sudo='' answer=''
  [ "$(id -u)" = 0 ] || sudo='sudo '
  local command="${sudo}apt-get install -y --no-install-recommends$packages"
  have apt-get || { give_up "not installed, and there is no apt to do it:$packages"; return; }
  if [ -z "$sudo" ]; then
    if [ "${CI:-}" = true ]; then
      answer=y
    elif [ -t 0 ] && [ -t 1 ]; then
      read -r -p "Install these Debian packages now? [y/N] " answer
    fi
  fi
  case $answer in
  [yY]*)
    echo "installing$packages"
    if needs_source; then
      source_line >"$source_file" || { give_up "cannot write $source_file"; return; }
    fi
    # shellcheck disable=SC2086 # names without blanks
    install_packages $packages || give_up "apt could not install$packages"
    ;;
  *)
    echo "For the programs run this once, then \`make setup\` again:"
    needs_source && echo "    echo '$(source_line)' | ${sudo}tee $source_file && ${sudo}apt-get update"
    echo "    $command"
    give_up "not installed:$packages"
    ;;
  esac
}

# python_client PINS installs one version of redis-py, or coredis, into an environment of its own.
python_client() {
  local venv=.venv/$1 pins=requirements-$1.txt
  stale "$venv/.installed" "$pins" || return 0
  planned 30 "the Python client $1" && return
  have python3 || { give_up "no python3 for the Python client $1"; return; }
  echo "installing the Python client $1"
  rm -rf "$venv"
  python3 -m venv "$venv" &&
    attempt "$venv/bin/pip" install -q --disable-pip-version-check --no-deps -r "$pins" &&
    touch "$venv/.installed" || give_up "the Python client $1 could not be installed"
}

node_clients() {
  stale node_modules/.installed package.json package-lock.json || return 0
  planned 25 "the Node clients" && return
  have node npm || { give_up "no node and npm for ioredis and node-redis"; return; }
  echo "installing the Node clients"
  attempt npm ci --loglevel=error --ignore-scripts >/dev/null &&
    touch node_modules/.installed || give_up "the Node clients could not be installed"
}

java_clients() {
  stale target/.installed pom.xml src || return 0
  planned 50 "the Java clients" && return
  have javac mvn || { give_up "no JDK and Maven for Jedis and Lettuce"; return; }
  echo "compiling the Java clients"
  rm -rf target
  # Maven colours even what it does not print.
  attempt mvn -B -q -ntp compile 2>&1 | sed $'s/\x1b\\[[0-9;]*m//g' &&
    touch target/.installed || give_up "the Java clients could not be compiled"
}

go_clients() {
  local stamp
  stamp=$(go env GOMODCACHE 2>/dev/null)/cache/cellserver-clients
  stale "$stamp" go.mod go.sum || return 0
  planned 30 "the Go clients" && return
  have go || { give_up "no go for go-redis and rueidis"; return; }
  GOWORK=off attempt go mod download && touch "$stamp" || give_up "the Go clients could not be downloaded"
}

spdx_tools() {
  stale .venv/.installed requirements.txt || return 0
  planned 55 "the tools of SPDX" && return
  have python3 || { give_up "no python3 for the tools of SPDX"; return; }
  echo "installing the tools of SPDX"
  rm -rf .venv
  python3 -m venv .venv &&
    attempt .venv/bin/pip install -q --disable-pip-version-check --no-deps -r requirements.txt &&
    touch .venv/.installed || give_up "the tools of SPDX could not be installed"
}

# within DIR COMMAND... runs COMMAND in the folder of one language.
within() {
  local back=$PWD
  cd "$1" || exit 1
  shift
  "$@"
  cd "$back" || exit 1
}

everything() {
  local language
  within python python_client 8
  within python python_client 5
  within python python_client coredis
  within node node_clients
  within java java_clients
  within go go_clients
  [ ! -d ../../tools/dist/spdx ] || within ../../tools/dist/spdx spdx_tools
  # Each language of compat_test/libraries installs itself, with the functions above.
  cd ../libraries || exit 1
  for language in */; do
    # shellcheck disable=SC1091
    [ ! -e "$language/install.sh" ] || within "$language" source ./install.sh
  done
  # So does each package for callers.
  for language in ../../clients/*/; do
    # shellcheck disable=SC1091
    [ ! -e "$language/install.sh" ] || within "$language" source ./install.sh
  done
  cd ../clients || exit 1
}

programs
everything
[ -n "$plan$packages" ] || exit 0
announce
pass=install
ask_for_packages
everything
exit $failed
