# shellcheck shell=bash
# Compiles the Rust programs with the crates of Cargo.lock: sourced by scripts/ci-setup.sh.
# The crates need Rust 1.88, which in Debian 12 is the package cargo-web.

rust_programs() {
  stale target/.installed Cargo.toml Cargo.lock src || return 0
  if ! have cargo && { [ "$(id -u)" != 0 ] || ! have apt-get; }; then
    give_up "no cargo for the Rust crates, and this is not root on Debian"
    return
  fi
  have cargo || install_packages cargo-web gcc libc6-dev ||
    { give_up "apt could not install cargo-web"; return; }
  echo "compiling the Rust programs"
  attempt cargo build --quiet --locked --target-dir target &&
    touch target/.installed || give_up "the Rust programs could not be compiled (they need Rust 1.88)"
}

rust_programs
