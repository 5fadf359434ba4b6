# shellcheck shell=bash
# Compiles the Rust programs with the crates of Cargo.lock: sourced by scripts/ci-setup.sh.
# The crates need Rust 1.88, which in Debian 12 is the package cargo-web.

rust_programs() {
  stale target/.installed Cargo.toml Cargo.lock build.rs src ../envoy/rls.proto ../envoy/health.proto || return 0
  have cargo || packaged 530 cargo-web gcc libc6-dev
  planned 400 "the Rust crates" && return
  have cargo || { give_up "no cargo for the Rust crates"; return; }
  echo "compiling the Rust programs"
  attempt cargo build --quiet --locked --target-dir target &&
    touch target/.installed || give_up "the Rust programs could not be compiled (they need Rust 1.88)"
}

rust_programs
