# Compiles the programs of this folder, and the own tests of two of the libraries, into
# target. It is sourced by scripts/ci-setup.sh.
# shellcheck shell=bash

# go_library_programs compiles all of it.
go_library_programs() {
  stale target/.installed ./*/*.go go.mod go.sum || return 0
  planned 150 "the limiter libraries of Go" && return
  have go || { give_up "no go for the limiter libraries of Go"; return; }
  echo "compiling the Go libraries"
  rm -rf target && mkdir target
  GOWORK=off attempt go build -o target ./envoy ./goredis ./httprate ./limiters ./redislock \
    ./redisrate ./redisstore ./redsync ./slidingwindow ./throttled ./ulule &&
    GOWORK=off attempt go test -c -o target/ulule.test github.com/ulule/limiter/v3/drivers/store/redis &&
    GOWORK=off attempt go test -c -o target/redisstore.test github.com/sethvargo/go-redisstore &&
    touch target/.installed || give_up "the Go libraries could not be compiled"
}

go_library_programs
