#!/usr/bin/env bash
# Drives redis-benchmark: CL.THROTTLE as a command of its own and the PING test.
# It ends with exit code 1 as soon as any reply is an error.
. "$(dirname "$0")/checks.sh"

# bench ARGS... sends 5,000 requests over ten connections, 16 per pipeline.
bench() {
  timeout 20 redis-benchmark -h "$host" -p "$port" -c 10 -n 5000 -P 16 -q "$@" </dev/null 2>&1
}

# measured ARGS... expects a rate, and that CONFIG GET was understood.
measured() {
  local got
  got=$(bench "$@") || { why="it ended with $?: $got"; return 1; }
  contains "$got" 'requests per second' && lacks "$got" 'WARNING'
}

keys() { timeout 10 redis-cli -h "$host" -p "$port" DBSIZE </dev/null; }

throttle() {
  measured -r 1000 CL.THROTTLE bench:__rand_int__ 15 30 60 || return
  why="$(keys) keys after 5,000 calls over 1,000 keys"
  [ "$(keys)" -gt 900 ]
}

throttle_resp3() { measured -3 -r 1000 CL.THROTTLE bench:__rand_int__ 15 30 60; }
one_key() { measured CL.THROTTLE bench:one 15 30 60; }
ping() { measured -t ping; }

error() {
  local got
  if got=$(bench CL.THROTTLE key-only); then
    why="it did not mind the error reply: $got"
    return 1
  fi
  contains "$got" "$usage"
}

reconnect() { restart && throttle; }

say "info version $(redis-benchmark --version | cut -d' ' -f2)"
check benchmark-throttle throttle
check benchmark-throttle-resp3 throttle_resp3
check benchmark-one-key one_key
check benchmark-ping ping
check benchmark-error error
check reconnect reconnect
exit "$failed"
