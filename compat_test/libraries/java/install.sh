# Sourced by scripts/ci-setup.sh in this folder.
# shellcheck shell=bash

java_libraries() {
  stale target/.installed pom.xml src || return 0
  planned 80 "the limiter libraries of Java" && return
  have javac mvn || { give_up "no JDK and Maven for the Java libraries"; return; }
  echo "compiling the Java library programs"
  rm -rf target
  # Maven colours even what it does not print.
  attempt mvn -B -q -ntp compile 2>&1 | sed $'s/\x1b\\[[0-9;]*m//g' &&
    touch target/.installed || give_up "the Java library programs could not be compiled"
}

java_libraries
