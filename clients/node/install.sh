# shellcheck shell=bash
# Sourced by scripts/ci-setup.sh, whose functions it uses: installs what the tests of the Node package run with.

node_package() {
  stale node_modules/.installed install.sh package.json package-lock.json || return 0
  planned 95 "what the tests of clients/node run with" && return
  have node npm || { give_up "no node and npm for the tests of clients/node"; return; }
  echo "installing what the tests of clients/node run with"
  attempt npm ci --loglevel=error --ignore-scripts >/dev/null &&
    touch node_modules/.installed || give_up "what the tests of clients/node run with could not be installed"
}

node_package
