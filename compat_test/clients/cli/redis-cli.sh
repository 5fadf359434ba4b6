#!/usr/bin/env bash
# Drives redis-cli: one-shot commands, standard input, the interactive prompt,
# and the modes --pipe, --scan, --stat and --bigkeys. CELL_RESP=3 adds -3.
. "$(dirname "$0")/checks.sh"

options=(-h "$host" -p "$port")
[ -n "${CELL_RESP:-}" ] && options+=("-$CELL_RESP")

# cli ARGS... must not eat the parent's answers, which are on standard input.
cli() { timeout 10 redis-cli "${options[@]}" "$@" </dev/null 2>&1; }

# cli_input TEXT... runs one command per TEXT over one connection.
cli_input() { printf '%s\n' "$@" | timeout 10 redis-cli "${options[@]}" 2>&1; }

connect() { expect "$(cli PING)" PONG; }

allowed() {
  expect "$(cli CL.THROTTLE allowed 15 30 60)" "$fresh" &&
    expect "$(cli CL.THROTTLE allowed 15 30 60 2 | head -n 3)" $'0\n16\n13' &&
    expect "$(cli --no-raw CL.THROTTLE formatted 15 30 60 | head -n 1)" '1) (integer) 0'
}

denied() {
  expect "$(cli CL.THROTTLE denied 0 1 3600)" $'0\n1\n0\n-1\n3600' || return
  local got retry
  got=$(cli CL.THROTTLE denied 0 1 3600)
  expect "$(head -n 3 <<<"$got")" $'1\n1\n0' || return
  retry=$(sed -n 4p <<<"$got")
  expect "$retry" "$(sed -n 5p <<<"$got")" || return
  why="a retry in $retry seconds"
  [ "$retry" -ge 3500 ] && [ "$retry" -le 3600 ]
}

# --pipe sends everything, then an ECHO of its own, and counts the replies. -2
# and -3 mean nothing to it.
piped() { timeout 10 redis-cli -h "$host" -p "$port" --pipe 2>&1; }

pipeline_100() {
  local sent
  sent=$(for _ in {1..100}; do printf 'CL.THROTTLE pipeline 99 100 3600\r\\n'; done)
  contains "$(printf '%b' "$sent" | piped)" 'errors: 0, replies: 100' &&
    expect "$(cli CL.THROTTLE pipeline 99 100 3600 0 | head -n 3)" $'0\n100\n0'
}

error_usage() {
  local got
  got=$(cli --no-raw CL.THROTTLE key-only)
  contains "$got" '(error) Cell error: ' && contains "$got" "$usage"
}

error_argument() {
  contains "$(cli --no-raw CL.THROTTLE key many 30 60)" "Couldn't parse as integer: many"
}

error_unknown_command() {
  local got
  got=$(cli_input 'CL.NOSUCH a b' PING)
  contains "$got" "ERR unknown command 'CL.NOSUCH', with args beginning with: 'a' 'b'" &&
    contains "$got" PONG
}

error_in_pipeline() {
  local good='CL.THROTTLE error-in-pipeline 15 30 60\r\n' got
  got=$(printf "$good"'CL.THROTTLE key-only\r\n'"$good" | piped)
  contains "$got" 'errors: 1, replies: 3' && contains "$got" "$usage"
}

# odd_key KEY takes the key as redis-cli reads it between double quotes.
odd_key() {
  local got
  got=$(cli_input "CL.THROTTLE \"$1\" 15 30 60" "DEL \"$1\"" "CL.THROTTLE \"$1\" 15 30 60")
  expect "$got" "$fresh"$'\n1\n'"$fresh"
}

binary_key() { odd_key '\x00\xff\r\n\x80 k'; }
empty_key() { odd_key ''; }

scan() {
  for i in {1..50}; do echo "CL.THROTTLE scan:$i 15 30 60"; done |
    timeout 10 redis-cli "${options[@]}" >/dev/null
  local got
  got=$(cli --scan --pattern 'scan:*' | sort -u)
  expect "$(grep -c '^scan:' <<<"$got")" 50 &&
    lacks "$(cli --scan --pattern 'scan:1?')" scan:20
}

bigkeys() {
  cli CL.THROTTLE bigkeys 15 30 60 >/dev/null
  local got
  got=$(cli --bigkeys) || { why="it failed: $got"; return 1; }
  contains "$got" 'Biggest string found' && lacks "$got" 'ERR'
}

# --stat never ends by itself; its lines are counted, not its exit code.
stat_mode() {
  local got
  got=$(timeout 1.5 stdbuf -oL redis-cli "${options[@]}" --stat -i 0.2 </dev/null 2>&1)
  contains "$got" 'keys ' && lacks "$got" -9223372036854775808 || return
  why="fewer than three lines of numbers in '$got'"
  [ "$(grep -cE '^[0-9]+ +[0-9.]+[BKMG] +[0-9]+ +[0-9]+ +[0-9]+ ' <<<"$got")" -ge 3 ]
}

# terminal runs redis-cli as a person does, who types what is on standard input.
terminal() {
  TERM=dumb REDISCLI_HISTFILE=/dev/null timeout 30 \
    script -qec "redis-cli ${options[*]}" /dev/null 2>&1
}

# At a terminal redis-cli asks COMMAND DOCS first and aborts on a wrong shape.
prompt() {
  local got
  got=$(printf 'CL.THROTTLE prompt 15 30 60\nHELP CL.THROTTLE\nquit\n' | terminal) ||
    { why="it ended with $?: $got"; return 1; }
  contains "$got" '1) (integer) 0' && contains "$got" '4) (integer) -1'
}

# read_until FD TEXT reads lines until one of them has TEXT.
read_until() {
  local line
  while read -r -t 10 -u "$1" line; do
    case $line in *"$2"*) return 0 ;; esac
  done
  why="no $2 within 10 seconds"
  return 1
}

# One redis-cli lives through the restart and finds the server again. It does
# so at a terminal only: elsewhere a lost connection ends it. The command by
# which it learns of the loss is answered with an error, the next one connects.
reconnect() {
  local got
  coproc TERMINAL { terminal; }
  local in=${TERMINAL[1]} out=${TERMINAL[0]}
  echo PING >&"$in"
  read_until "$out" PONG && restart || return
  printf 'PING\nCL.THROTTLE reconnect 15 30 60\nquit\n' >&"$in"
  got=$(timeout 10 cat <&"$out")
  contains "$got" '1) (integer) 0' && contains "$got" '3) (integer) 15'
}

say "info version $(redis-cli --version | cut -d' ' -f2)"
check connect connect
check throttle-allowed allowed
check throttle-denied denied
check pipeline-100 pipeline_100
check error-usage error_usage
check error-argument error_argument
check error-unknown-command error_unknown_command
check error-in-pipeline error_in_pipeline
check binary-key binary_key
check empty-key empty_key
check scan scan
check bigkeys bigkeys
check stat stat_mode
check prompt prompt
check reconnect reconnect
say "info resp $(cli CLIENT INFO | sed -n 's/.*\bresp=\([0-9]\).*/\1/p')"
exit "$failed"
