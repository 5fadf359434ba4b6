# shellcheck shell=bash
# Compiles the C program with Debian's hiredis: sourced by scripts/ci-setup.sh.

c_program() {
  stale target/.installed hiredis.c || return 0
  if ! have gcc || [ ! -e /usr/include/hiredis/hiredis.h ]; then
    packaged 200 gcc libc6-dev libhiredis-dev
    planned 1 "the C program" && return
    give_up "no gcc with hiredis"
    return
  fi
  planned 1 "the C program" && return
  echo "compiling the C program"
  mkdir -p target
  gcc -Wall -Wextra -O1 -o target/hiredis hiredis.c -lhiredis -lpthread &&
    touch target/.installed || give_up "the C program could not be compiled"
}

c_program
