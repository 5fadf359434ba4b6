# shellcheck shell=bash
# Sourced by scripts/ci-setup.sh, whose functions it uses: installs the libraries into
# .venv, and unpacks the source distribution of limits, for its tests, in .venv/sdist.

python_libraries() {
  local pip=.venv/bin/pip
  stale .venv/.installed install.sh requirements.txt requirements-sdist.txt || return 0
  planned 100 "the limiter libraries of Python" && return
  have python3 || { give_up "no python3 for the Python limiter libraries"; return; }
  echo "installing the Python limiter libraries"
  rm -rf .venv
  python3 -m venv .venv &&
    attempt $pip install -q --disable-pip-version-check --no-deps --require-hashes \
      -r requirements.txt &&
    attempt $pip download -q --disable-pip-version-check --no-deps --require-hashes \
      --no-binary limits -d .venv/sdist -r requirements-sdist.txt &&
    tar -xzf .venv/sdist/limits-*.tar.gz -C .venv/sdist &&
    touch .venv/.installed || give_up "the Python limiter libraries could not be installed"
}

python_libraries
