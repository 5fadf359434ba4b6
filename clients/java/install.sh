# shellcheck shell=bash
# Sourced by scripts/ci-setup.sh, whose functions it uses: fetches what the Java package is built and tested with, and what its
# installation into an empty project needs. A single test is run for it, since the runner of tests is fetched with the first one.

java_package() {
  stale target/.installed install.sh pom.xml ./*/pom.xml || return 0
  planned 120 "what clients/java is built and tested with" && return
  have javac mvn || { give_up "no JDK and Maven for the tests of clients/java"; return; }
  echo "installing what clients/java is built and tested with"
  # Maven colours even what it does not print.
  attempt mvn -B -q -ntp install dependency:build-classpath -Dmdep.outputFile=target/classpath \
    -Dtest='VectorsTest#eachFileIsRead' -Dsurefire.failIfNoSpecifiedTests=false 2>&1 | sed $'s/\x1b\\[[0-9;]*m//g' &&
    mkdir -p target && touch target/.installed || give_up "what clients/java is built and tested with could not be installed"
}

java_package
