# shellcheck shell=bash
# Sourced by scripts/ci-setup.sh, whose functions it uses: installs what the tests of the Python package run with into .venv,
# and keeps the same wheels in .venv/wheels, from which an empty environment is filled without a network.

python_package() {
  local pip=.venv/bin/pip
  stale .venv/.installed install.sh requirements.txt || return 0
  planned 230 "what the tests of clients/python run with" && return
  have python3 || { give_up "no python3 for the tests of clients/python"; return; }
  echo "installing what the tests of clients/python run with"
  rm -rf .venv
  python3 -m venv .venv &&
    attempt $pip download -q --disable-pip-version-check --no-deps --require-hashes \
      -d .venv/wheels -r requirements.txt &&
    $pip install -q --disable-pip-version-check --no-deps --require-hashes --no-index \
      --find-links .venv/wheels -r requirements.txt &&
    touch .venv/.installed || give_up "what the tests of clients/python run with could not be installed"
}

python_package
