# shellcheck shell=bash
# Compiles the C program with Debian's hiredis: sourced by scripts/ci-setup.sh.

c_program() {
  stale target/.installed hiredis.c || return 0
  if ! have gcc || [ ! -e /usr/include/hiredis/hiredis.h ]; then
    if [ "$(id -u)" != 0 ] || ! have apt-get; then
      give_up "no gcc with hiredis, and this is not root on Debian"
      return
    fi
    echo "installing gcc and hiredis"
    install_packages gcc libc6-dev libhiredis-dev || { give_up "apt could not install gcc and hiredis"; return; }
  fi
  echo "compiling the C program"
  mkdir -p target
  gcc -Wall -Wextra -O1 -o target/hiredis hiredis.c -lhiredis -lpthread &&
    touch target/.installed || give_up "the C program could not be compiled"
}

c_program
