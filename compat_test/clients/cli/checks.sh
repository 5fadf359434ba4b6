# Sourced by the programs beside it: how a check in shell runs and is reported,
# one line each on standard output (see ../README.md).
set -uo pipefail

: "${CELL_ADDR:?must be host:port}"
host=${CELL_ADDR%:*}
port=${CELL_ADDR##*:}
failed=0
fresh=$'0\n16\n15\n-1\n2'
usage='Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]'
# Parts of a check run in subshells; what they say goes past their output.
exec 3>&1

# say TEXT prints one line whatever TEXT holds.
say() {
  local text=${1//$'\r'/\\r}
  printf '%s\n' "${text//$'\n'/\\n}" >&3
}

# expect GOT WANT fails the running check unless both are the same text.
expect() {
  [ "$1" = "$2" ] && return 0
  why="got '$1', want '$2'"
  return 1
}

# contains TEXT PART fails the running check unless PART is somewhere in TEXT.
contains() {
  case $1 in *"$2"*) return 0 ;; esac
  why="got '$1', which lacks '$2'"
  return 1
}

# lacks TEXT PART fails the running check if PART is somewhere in TEXT.
lacks() {
  case $1 in
    *"$2"*) why="got '$1', which has '$2'"; return 1 ;;
  esac
  return 0
}

# check NAME FUNCTION runs FUNCTION; it fails by its exit code, with why set.
check() {
  why='it returned a failure'
  if "$2"; then
    say "ok $1"
    return
  fi
  failed=1
  say "FAIL $1: $why"
}

# restart has the parent restart the server.
restart() {
  local answer
  say RESTART
  read -r answer
  expect "$answer" RESTARTED
}
