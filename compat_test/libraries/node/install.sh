# Sourced by scripts/ci-setup.sh: npm ci checks every package against the lock file.
# shellcheck shell=bash
node_limiters() {
  stale node_modules/.installed package.json package-lock.json || return 0
  planned 40 "the limiter libraries of Node" && return
  have node npm || { give_up "no node and npm for the Node limiter libraries"; return; }
  echo "installing the Node limiter libraries"
  attempt npm ci --loglevel=error --ignore-scripts --no-audit --no-fund >/dev/null &&
    touch node_modules/.installed || give_up "the Node limiter libraries could not be installed"
}
node_limiters
