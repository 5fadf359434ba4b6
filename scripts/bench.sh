#!/usr/bin/env bash
# Measures this server beside Redis and writes what it found: bash scripts/bench.sh
#
# A full run takes about 14 minutes and writes docs/performance.md. Environment:
#   BENCH_QUICK=1       a look within three minutes, in bin/performance-quick.md
#   BENCH_LARGE=1       the memory of 10 million keys too
#   BENCH_OUT=FILE      write there instead
#   BENCH_SPAN=1s       how long a run of the main table lasts, BENCH_OPEN=2s of an
#                       open loop
#   BENCH_PORT=17100    the first of a dozen ports to use
#   CELL_BENCH_TARGETS  other servers that know CL.THROTTLE, to be put beside ours:
#                       "name=host:port name=host:port"
#
# redis-server has to be installed (make setup). redis-cell is built if cargo can.
# The server under test gets the first core and the load the others, if taskset is
# there; the pages with latency curves go to bin/bench.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=${BENCH_QUICK:-}
port=${BENCH_PORT:-17100}
work=bin/bench
mkdir -p "$work"
if [ -n "$quick" ]; then
  out=${BENCH_OUT:-bin/performance-quick.md}
  rounds=2 span=200ms warmup=100ms kind_span=200ms kind_warmup=100ms open_span=1s open_rounds=2 keys=100000 idle=1000 settle=2s lead=3s tail=2s growth=100000
else
  out=${BENCH_OUT:-docs/performance.md}
  rounds=5 span=${BENCH_SPAN:-1s} warmup=500ms kind_span=1s kind_warmup=200ms open_span=${BENCH_OPEN:-2s} open_rounds=15 keys=1000000 idle=9900 settle=15s lead=10s tail=4s growth=1000000
fi
cores=$(nproc)
throttle='CL.THROTTLE user:{key} 15 30 60'
running=()

# say LINE... tells whoever waits; write appends to the document.
say() { echo "$*" >&2; }
write() { printf '%s\n' "$@" >>"$out"; }

# section TITLE TEXT...
section() {
  say "== $1"
  write "## $1" ''
  shift
  [ $# = 0 ] || write "$@" ''
}

# pin CORES sets the array pinned to what runs a command on these cores: a prefix,
# so that the process that is started is the command's own.
pin() {
  pinned=()
  if command -v taskset >/dev/null && [ "$cores" -gt 1 ]; then pinned=(taskset -c "$1"); fi
}

# load_cores is where the load runs, unless a test says otherwise.
load_cores=1-$((cores - 1))
[ "$cores" -gt 1 ] || load_cores=0

load() {
  local pinned
  pin "$load_cores"
  "${pinned[@]}" bin/cellbench "$@"
}

# shell prints words as they may be typed.
shell() {
  local word text=
  for word; do
    case $word in
      *[!A-Za-z0-9_./:=,+-]*) text+=" '$word'" ;;
      *) text+=" $word" ;;
    esac
  done
  echo "${text# }"
}

# measure ARGUMENT... runs cellbench and writes its command and its tables, and
# whatever went wrong.
measure() {
  write '```' "$(shell cellbench "$@")" '```' ''
  load "$@" --markdown >>"$out" 2>"$work/errors" || true
  if [ -s "$work/errors" ]; then
    tee /dev/stderr <"$work/errors" | sed 's/^/> /' >>"$out"
    write ''
  fi
}

# serve CORES PORT COMMAND... starts a server, waits until it answers and leaves its
# process in the variable served.
serve() {
  local at=$2 try pinned
  pin "$1"
  shift 2
  if (exec 3<>"/dev/tcp/127.0.0.1/$at") 2>/dev/null; then
    say "something listens on port $at already; BENCH_PORT chooses others"
    exit 1
  fi
  "${pinned[@]}" "$@" >"$work/server-$at.log" 2>&1 &
  served=$!
  running+=("$served")
  for try in $(seq 100); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$at") 2>/dev/null; then return; fi
    kill -0 "$served" 2>/dev/null || break
    sleep 0.1
  done
  say "the server on port $at does not start:"
  tail -5 "$work/server-$at.log" >&2
  exit 1
}

serve_ours() { # CORES PORT OPTION...
  local on_cores=$1 at=$2
  shift 2
  serve "$on_cores" "$at" bin/cellserver --port "$at" --save '' "$@"
}

serve_redis() { # CORES PORT OPTION...
  local on_cores=$1 at=$2
  shift 2
  serve "$on_cores" "$at" redis-server --port "$at" --save '' --appendonly no "$@"
}

# stop PROCESS... ends servers that serve has started.
stop() {
  local pid
  for pid; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}
trap 'stop "${running[@]}"' EXIT

prepare() {
  command -v redis-server >/dev/null || { say "redis-server is not installed: make setup does it"; exit 1; }
  go build -trimpath -o bin/ ./cmd/cellserver ./cmd/cellbench
  if module=$(bash scripts/redis-cell.sh); then
    say "redis-cell: $module"
  else
    module=
    say 'SKIP: redis-cell 0.2.2 could not be built, so nothing is put beside it'
  fi
}

header() {
  local model skipped=
  model=$(awk -F': *' '/^model name/ {print $2; exit}' /proc/cpuinfo 2>/dev/null || true)
  [ -n "$module" ] || skipped=' (SKIP: it could not be built here)'
  : >"$out"
  write '# Performance' '' \
    'Written by `make bench` (scripts/bench.sh); do not edit. All figures are from one session on one machine,' \
    'with the load on the same machine: read them as ratios. Every table stands below the command that made it' \
    '(docs/cellbench.md explains both), every figure is the median of alternating rounds, and the spread from the' \
    'least to the greatest round is in parentheses. CPU per command is the processor time of the whole server' \
    'process, user and kernel, divided by the commands it answered.' ''
  [ -z "$quick" ] || write '**This is a quick look: short runs, few rounds, small numbers of keys.**' ''
  write '| | |' '|---|---|' \
    "| measured | $(date -u '+%Y-%m-%d %H:%M UTC') |" \
    "| machine | ${model:-$(uname -m)}, $cores cores, $(uname -sr) |" \
    "| cellserver | $(bin/cellserver --version) at $(git describe --always --dirty 2>/dev/null || echo 'no commit') |" \
    "| Redis | $(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/') |" \
    "| redis-cell | 0.2.2, for speed only: its rounding differs from later versions$skipped |" \
    "| pinned | server on core 0, load on cores $load_cores$(command -v taskset >/dev/null || echo ' (SKIP: no taskset)') |" ''
}

# beside sets the array peers to the targets that most tables have.
beside() {
  local other
  peers=(
    --target "cellserver=127.0.0.1:$port $throttle"
    --target "Redis PING=127.0.0.1:$((port + 1)) PING"
    --target "Redis SET=127.0.0.1:$((port + 1)) SET user:{key} x"
    --target "Redis GET=127.0.0.1:$((port + 1)) GET user:{key}"
  )
  [ -z "$module" ] || peers+=(--target "redis-cell=127.0.0.1:$((port + 2)) $throttle")
  for other in ${CELL_BENCH_TARGETS:-}; do peers+=(--target "$other $throttle"); done
}

cost() {
  section 'CPU per command' 'Closed loop, 100,000 keys drawn uniformly; P is the depth of the pipeline.'
  measure sweep "${peers[@]}" --pipelines 1,16,32 --connections 50,1000 --rounds "$rounds" -d "$span" --warmup "$warmup"
}

latency() {
  section 'Latency at a constant rate' \
    'Open loop: a latency counts from the instant at which the command should have left, so a pause is charged' \
    'for every command it held up. The many rounds are for the ratios: a pause of the machine hits one server.'
  measure compare "${peers[@]}" --rate 60000 --rounds "$open_rounds" -d "$open_span" --warmup "$warmup" \
    --title 'Latency at 60,000 commands a second' --html "$work/latency.html" --json "$work/latency.json"
}

kinds() {
  section 'Every limiter' 'Cost of each command of cellserver, 100,000 keys drawn uniformly.'
  local at=127.0.0.1:$port
  measure sweep --pipelines 1,32 --rounds "$rounds" -d "$kind_span" --warmup "$kind_warmup" \
    --target "CL.THROTTLE=$at CL.THROTTLE cl:{key} 15 30 60" \
    --target "SW COUNTER=$at SW.ALLOW sc:{key} 30 60" \
    --target "SW FIXED=$at SW.ALLOW sf:{key} 30 60 FIXED" \
    --target "SW LOG=$at SW.ALLOW sl:{key} 30 60 LOG" \
    --target "SW BUCKETS 6=$at SW.ALLOW sb:{key} 30 60 BUCKETS 6" \
    --target "TB GREEDY=$at TB.ACQUIRE tg:{key} 16 30 60" \
    --target "TB INTERVAL=$at TB.ACQUIRE ti:{key} 16 30 60 INTERVAL" \
    --target "TB LEAKY=$at TB.ACQUIRE tl:{key} 16 30 60 LEAKY" \
    --target "TB DEBT=$at TB.ACQUIRE td:{key} 16 30 60 DEBT" \
    --target "TB WARMUP=$at TB.ACQUIRE tw:{key} 16 30 60 WARMUP 10" \
    --target "RL.MULTI of two=$at RL.MULTI 2 ma:{key} mb:{key} CL 15 30 60 SW 1000 3600" \
    --target "CC.ACQUIRE=$at CC.ACQUIRE cc:{key} 10 5 m{seq}" \
    --target "GET=$at GET cl:{key}" \
    --target "PING=$at PING"
}

# script_sha PORT SCRIPT loads a script and prints its name.
script_sha() { redis-cli -p "$1" SCRIPT LOAD "$2" 2>/dev/null | tr -d '\r'; }

# pair COMMAND LIMIT measures the command on this server and on Redis.
pair() {
  write "At most $2 times Redis' is what we aim at:" ''
  measure sweep --pipelines 32 --rounds "$rounds" -d "$kind_span" --warmup "$kind_warmup" -q 1-10 --no-check \
    --target "cellserver ${1%% *}=127.0.0.1:$port $1" --target "Redis ${1%% *}=127.0.0.1:$((port + 1)) $1"
}

programs() {
  section 'What programs do beside limiting' \
    'Plain strings, counters and small collections at a depth of 32, the same command on both servers.'
  pair 'SET s:{key} x' 0.8
  pair 'GET s:{key}' 0.8
  pair 'INCR n:{key}' 0.8
  pair 'ZADD z:{key} {seq} m{q}' 1.3
  pair 'HSET h:{key} f{q} x' 1.3

  section 'Scripts' \
    'A script that passes CL.THROTTLE on, which is how many clients reach redis-cell, beside a script of one SET in' \
    "both servers. At most 1.25 times Redis' is what we aim at."
  local set="return redis.call('SET', KEYS[1], ARGV[1])" sha sha_set sha_redis
  sha=$(script_sha "$port" "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])")
  sha_set=$(script_sha "$port" "$set")
  sha_redis=$(script_sha $((port + 1)) "$set")
  measure sweep --pipelines 32 --rounds "$rounds" -d "$kind_span" --warmup "$kind_warmup" --no-check \
    --target "cellserver CL.THROTTLE=127.0.0.1:$port EVALSHA $sha 1 e:{key} 15 30 60" \
    --target "Redis SET=127.0.0.1:$((port + 1)) EVALSHA $sha_redis 1 e:{key} x" \
    --target "cellserver SET=127.0.0.1:$port EVALSHA $sha_set 1 es:{key} x"

  section 'Transactions' \
    'Ten CL.THROTTLE between MULTI and EXEC in one packet, and ten plain ones, of which 1.3 times is what we aim at:' \
    'from bytes in to bytes out, without the sockets.'
  write '```' "go test ./server -run '^\$' -bench BenchmarkTransaction -benchtime $kind_span -count $rounds"
  go test ./server -run '^$' -bench BenchmarkTransaction -benchtime "$kind_span" -count "$rounds" | grep '^Benchmark' >>"$out" || true
  write '```' ''
}

scaling() {
  local n at targets=() heavy=() pids=() most=$((cores - 1))
  [ "$most" -le 3 ] || most=3
  if [ "$most" -lt 2 ]; then
    section 'More cores' "SKIP: $cores cores are too few for a server on two and a load beside it."
    return
  fi
  section 'More cores' \
    "Servers with one event loop per core, on cores 0 to $((most - 1)); the load is on core $((cores - 1)) alone. With CL.THROTTLE" \
    'it is the load that is at its limit: compare CPU per command, of which a loop that waits for work has more. With' \
    'RL.MULTI of two limits the servers are, so that the commands per second count too.'
  for n in $(seq "$most" -1 1); do
    at=$((port + 3 + n))
    serve_ours "0-$((n - 1))" "$at" --io-threads "$n"
    pids+=("$served")
    targets+=(--target "loops: $n=127.0.0.1:$at $throttle")
    heavy+=(--target "loops: $n=127.0.0.1:$at RL.MULTI 2 ma:{key} mb:{key} CL 15 30 60 SW 1000 3600")
  done
  load_cores=$((cores - 1)) measure compare "${targets[@]}" -P 32 --rounds "$rounds" -d "$span" --warmup "$warmup" --threads 1
  load_cores=$((cores - 1)) measure compare "${heavy[@]}" -P 32 --rounds "$rounds" -d "$span" --warmup "$warmup" --threads 1
  stop "${pids[@]}"
}

# bytes_per_key KEYS DIGITS COMMAND floods the server on port+8 and prints what each
# key took. The command's key is one letter and the digits.
bytes_per_key() {
  load run --target "x=127.0.0.1:$((port + 8))" --command "$3" --choose flood --key-width "$2" -n "$1" --warmup 0s \
    -c 16 -P 64 --no-check --markdown |
    awk -F'|' '/^Memory/ {m = 1} m && $2 == " x " {gsub(/ /, "", $5); size = $5} END {print size ? size : "failed"}' || true
}

memory() {
  local n width row command sizes=("$keys")
  [ -z "${BENCH_LARGE:-}" ] || sizes+=(10000000)
  section 'Memory per key' 'Growth of the resident memory of a fresh server, divided by the keys: everything included.'
  write '```' \
    "cellbench run --choose flood --key-width 15 -n $keys --warmup 0s -c 16 -P 64 --command 'CL.THROTTLE k{key} 15 1 3600'" '```' '' \
    '| keys | of bytes | cellserver CL.THROTTLE | cellserver SW COUNTER | cellserver TB GREEDY | Redis SET | redis-cell |' \
    '|---:|---:|---:|---:|---:|---:|---:|'
  for n in "${sizes[@]}"; do
    for width in 15 39; do
      row="| $n | $((width + 1)) |"
      for command in 'CL.THROTTLE k{key} 15 1 3600' 'SW.ALLOW k{key} 30 36000' 'TB.ACQUIRE k{key} 16 1 3600'; do
        serve_ours 0 $((port + 8))
        row+=" $(bytes_per_key "$n" "$width" "$command") |"
        stop "$served"
      done
      serve_redis 0 $((port + 8))
      row+=" $(bytes_per_key "$n" "$width" 'SET k{key} x') |"
      stop "$served"
      if [ -n "$module" ]; then
        serve_redis 0 $((port + 8)) --loadmodule "$module"
        row+=" $(bytes_per_key "$n" "$width" 'CL.THROTTLE k{key} 15 1 3600') |"
        stop "$served"
      else
        row+=' - |'
      fi
      write "$row"
    done
  done
  write ''
}

connections() {
  section 'Idle connections' "After one PING each and $settle of silence, on fresh servers."
  serve_ours 0 $((port + 8))
  serve_redis 0 $((port + 9))
  local redis=$served
  measure idle --target "cellserver=127.0.0.1:$((port + 8))" --target "Redis=127.0.0.1:$((port + 9))" -c "$idle" --settle "$settle"
  stop "$redis" "${running[-2]}"
}

pauses() {
  section 'Pauses while the keyspace grows' \
    'The same command on keys that are new every time, and on keys that are known: what the growth adds. The figures' \
    'hold the pauses of network, load and machine too.'
  serve_ours 0 $((port + 8))
  measure compare --target "new keys=127.0.0.1:$((port + 8)) CL.THROTTLE new:{seq} 15 1 3600" \
    --target "known keys=127.0.0.1:$((port + 8)) CL.THROTTLE known:{key} 15 1 3600" --rounds 1 -n "$growth" -c 4 --warmup 0s
  stop "$served"

  section 'Many keys expiring at once' 'Other clients call CL.THROTTLE at a constant rate meanwhile.'
  serve_ours 0 $((port + 8))
  local targets=(--target "cellserver=127.0.0.1:$((port + 8))") pids=("$served")
  if [ -n "$module" ]; then
    serve_redis 0 $((port + 9)) --loadmodule "$module"
    targets+=(--target "redis-cell=127.0.0.1:$((port + 9))")
    pids+=("$served")
  fi
  measure expiry "${targets[@]}" --keys "$keys" --lead "$lead" --tail "$tail"
  stop "${pids[@]}"
}

beside_others() {
  section 'Others meanwhile' \
    'Latency of CL.THROTTLE over one connection, one call after another, on its own; beside a thousand clients that' \
    'read nothing of megabytes of replies; and while eight callers are refused 50,000 connections for maxclients.' \
    'Nothing is pinned: callers, load and server share all cores.'
  write '```' "go test ./cmd/cellserver -run '^\$' -bench BenchmarkBeside -benchtime 100000x"
  go test ./cmd/cellserver -run '^$' -bench BenchmarkBeside -benchtime 100000x | grep '^Benchmark' >>"$out" || true
  write '```' ''
}

prepare
header
serve_ours 0 "$port"
serve_redis 0 $((port + 1))
[ -z "$module" ] || serve_redis 0 $((port + 2)) --loadmodule "$module"
beside
cost
latency
kinds
programs
stop "${running[@]}"
running=()
scaling
memory
connections
pauses
beside_others
say "written to $out"
