#!/usr/bin/env bash
# Measures what keeping state costs, beside Redis: bash scripts/bench-persistence.sh
#
# A full run takes about ten minutes and writes docs/persistence-performance.md.
# Environment:
#   BENCH_QUICK=1     a look within two minutes, in bin/persistence-quick.md
#   BENCH_OUT=FILE    write there instead
#   BENCH_ONLY=NAMES  only these sections: cost cores fsyncs load rewrite fault
#   BENCH_DIR=DIR     where the servers keep their files (a directory of mktemp)
#   BENCH_PORT=17300  the first of a dozen ports to use
#   BENCH_CELL=FILE   libredis_cell.so, to be put beside ours
#   BENCH_ROUNDS=5, BENCH_SPAN=1s, BENCH_OPEN=8s  how much of everything
#
# redis-server has to be installed, strace for fault, and perf or strace for fsyncs.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=${BENCH_QUICK:-} port=${BENCH_PORT:-17300} only=${BENCH_ONLY:-cost cores fsyncs load rewrite fault}
if [ -n "$quick" ]; then
  out=${BENCH_OUT:-bin/persistence-quick.md} rounds=2 span=300ms keys=100000 calls=20000 open=3s
else
  out=${BENCH_OUT:-docs/persistence-performance.md} rounds=${BENCH_ROUNDS:-5} span=${BENCH_SPAN:-1s} keys=1000000 calls=100000 open=${BENCH_OPEN:-8s}
fi
files=$(mktemp -d "${BENCH_DIR:-${TMPDIR:-/tmp}}/persistence.XXXXXX")
running=()
# Every call is allowed, and so has an effect, as every SET has.
throttle='CL.THROTTLE user:{key} 1000000 1 60'
tat=$(($(date +%s) + 86400))
set_tat="SET user:{key} ${tat}000000000 PXAT ${tat}000"

say() { echo "$*" >&2; }
write() { printf '%s\n' "$@" >>"$out"; }
section() { say "== $1"; write "## $1" '' "${@:2}" ''; }

# stop PID... ends servers as an operator would.
stop() {
  local pid
  for pid; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
}
trap 'stop "${running[@]}"; rm -rf "$files"' EXIT

# serve PORT COMMAND... starts a server and leaves its process in served.
serve() {
  local at=$1 try
  shift
  "$@" >"$files/log-$at" 2>&1 &
  served=$!
  running+=("$served")
  for try in $(seq 600); do
    [ "$(redis-cli -p "$at" ECHO up 2>/dev/null)" = up ] && return
    kill -0 "$served" 2>/dev/null || break
    sleep 0.1
  done
  say "the server on port $at does not start:"; tail -5 "$files/log-$at" >&2
  exit 1
}

# ours PORT DIR OPTION..., and redis PORT DIR OPTION...
ours() { mkdir -p "$files/$2"; serve "$1" "${wrap[@]}" "${pin[@]}" bin/cellserver --port "$1" --dir "$files/$2" --auto-aof-rewrite-percentage 0 "${@:3}"; }
redis() { mkdir -p "$files/$2"; serve "$1" "${wrap[@]}" "${pin[@]}" redis-server --port "$1" --dir "$files/$2" --save '' --auto-aof-rewrite-percentage 0 "${@:3}"; }
wrap=()
# The server gets the first core and the load the others, if taskset is there.
pin=() load=(bin/cellbench)
if command -v taskset >/dev/null && [ "$(nproc)" -gt 1 ]; then pin=(taskset -c 0) load=(taskset -c "1-$(($(nproc) - 1))" bin/cellbench); fi

loaded() { until redis-cli -p "$1" INFO persistence | grep -q '^loading:0'; do sleep 0.05; done; }
info() { redis-cli -p "$1" INFO | tr -d '\r' | sed -n "s/^$2://p"; }
middle() { sort -n | awk '{a[NR] = $1} END {print a[int((NR + 1) / 2)] " (" a[1] ".." a[NR] ")"}'; }
size() { find "$@" -type f -printf '%s\n' | awk '{n += $1} END {print n + 0}'; }

header() {
  : >"$out"
  write '# What keeping state costs' '' \
    'scripts/bench-persistence.sh writes this page; do not edit it. All figures are from one run on one machine' \
    'that was also used for other work: read them as ratios. Rounds alternate between the servers. Tables of' \
    'several rounds show the median, and the least and the greatest in parentheses. CPU is that of the whole' \
    'server process. "Ours" is CL.THROTTLE on cellserver, "SET" is SET on Redis.' '' \
    '| | |' '|---|---|' "| measured | $(date -u '+%Y-%m-%d %H:%M UTC') |" \
    "| machine | $(awk -F': *' '/^model name/ {print $2; exit}' /proc/cpuinfo), $(nproc) cores, $(uname -sr) |" \
    "| load of the machine before | $(cut -d' ' -f1-3 /proc/loadavg) |" \
    "| files on | $(df --output=fstype "$files" | tail -1) |" \
    "| cellserver | $(bin/cellserver --version) at $(git describe --always --dirty 2>/dev/null) |" \
    "| pinned | ${pin:+server on core 0, load on the others, except for loading} |" \
    "| Redis | $(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/') |" ''
}

cost() {
  local at=$port policy targets=() pids=()
  section 'CPU and throughput under each policy' 'The load is a closed loop over 100,000 keys. Every command changes something.'
  for policy in off everysec always; do
    local log=(--appendonly yes --appendfsync "$policy")
    [ $policy != off ] || log=(--appendonly no)
    ours $at "ours-$policy" "${log[@]}"; pids+=("$served"); targets+=(--target "ours $policy=127.0.0.1:$at $throttle")
    redis $((at + 1)) "redis-$policy" "${log[@]}"; pids+=("$served"); targets+=(--target "SET $policy=127.0.0.1:$((at + 1)) SET user:{key} x")
    if [ -n "${BENCH_CELL:-}" ]; then
      redis $((at + 2)) "cell-$policy" "${log[@]}" --loadmodule "$BENCH_CELL"; pids+=("$served")
      targets+=(--target "redis-cell $policy=127.0.0.1:$((at + 2)) $throttle")
    fi
    at=$((at + 3))
  done
  local p
  for p in 1 32; do
    write '```' "cellbench sweep ... --pipelines $p --connections 50,500 --rounds $rounds -d $span" '```' ''
    "${load[@]}" sweep "${targets[@]}" --pipelines "$p" --connections 50,500 --rounds "$rounds" -d "$span" --warmup 200ms --quiet --no-check --markdown >>"$out" || true
  done
  stop "${pids[@]}"
}

# With one core the loops, the thread that forces the log to disk and the kernel share it,
# and nothing of what one waits for can be done by another.
cores() {
  local pin=("${pin[@]}") load=("${load[@]}")
  if [ ${#pin[@]} = 0 ] || [ "$(nproc)" -lt 4 ]; then return; fi
  pin=(taskset -c 0,1) load=(taskset -c "2-$(($(nproc) - 1))" bin/cellbench)
  section 'always with two cores' 'Both servers run with their default threads: ours has an event loop per core, Redis one thread for commands.'
  ours "$port" cores-ours --appendonly yes --appendfsync always; local pids=("$served")
  redis $((port + 1)) cores-redis --appendonly yes --appendfsync always; pids+=("$served")
  write '```' "cellbench sweep ... --pipelines 1 --connections 50,500 --rounds $rounds -d $span" '```' ''
  "${load[@]}" sweep --target "ours always=127.0.0.1:$port $throttle" --target "SET always=127.0.0.1:$((port + 1)) SET user:{key} x" \
    --pipelines 1 --connections 50,500 --rounds "$rounds" -d "$span" --warmup 200ms --quiet --no-check --markdown >>"$out" || true
  stop "${pids[@]}"
}

# counting FILE PID COMMAND... runs the command, and writes what it had the process do to
# force files to disk into FILE, a line for each kind of call or for each call.
counting() {
  local file=$1 pid=$2 tracer
  shift 2
  if perf stat -e syscalls:sys_enter_fdatasync true 2>/dev/null; then
    perf stat -x, -o "$file" -e syscalls:sys_enter_fdatasync,syscalls:sys_enter_fsync -p "$pid" -- "$@"
    return
  fi
  strace -f --seccomp-bpf -qq -p "$pid" -o "$file" -e trace=fdatasync,fsync & tracer=$!
  sleep 0.5
  "$@"
  kill $tracer && wait $tracer || true
}

fsyncs() {
  section 'fsyncs under always' "perf counts the calls, or strace if perf cannot, over $calls commands with P=1. strace stops threads by signals, which costs a server with several threads more."
  command -v perf >/dev/null || command -v strace >/dev/null || { write 'SKIP: no perf, no strace.' ''; return; }
  write '| server | connections | fsyncs per 1,000 commands: median (least..greatest) |' '|---|---:|---:|'
  local c name
  for c in 50 500; do
    for name in ours redis; do
      local command=$throttle
      [ $name = ours ] || command='SET user:{key} x'
      $name "$port" "fsync-$name-$c" --appendonly yes --appendfsync always
      for _ in $(seq "$rounds"); do
        counting "$files/calls" "$served" "${load[@]}" run --target "127.0.0.1:$port" --command "$command" -c $c -n "$calls" --warmup 0s --quiet --no-check >/dev/null
        awk -F, -v calls="$calls" '/sys_enter/ {n += $1} /sync\(/ {n++} END {printf "%.1f\n", n * 1000 / calls}' "$files/calls"
      done >"$files/counts"
      stop "$served"
      write "| $name | $c | $(middle <"$files/counts") |"
    done
  done
  write ''
}

# fill PORT COMMAND makes a key with each of so many commands.
fill() { "${load[@]}" run --target "127.0.0.1:$1" --command "$2" --choose flood --key-width 11 -c 50 -P 32 -n "$keys" --warmup 0s --quiet --no-check >/dev/null; }

load() {
  section 'Loading' "Each server loads $keys keys of 16 bytes, written by CL.THROTTLE (ours) or SET key TAT PXAT (Redis). Times are from each server's own log."
  write '| | bytes for each key | milliseconds | a second |' '|---|---:|---:|---:|'
  local i name form
  for name in ours redis; do
    local command=$set_tat
    [ $name = redis ] || command=$throttle
    $name "$port" "log-$name" --appendonly yes --appendfsync no
    fill "$port" "$command"
    stop "$served"
    cp -r "$files/log-$name" "$files/base-$name"
    $name "$port" "base-$name" --appendonly yes; loaded "$port"
    redis-cli -p "$port" BGREWRITEAOF >/dev/null
    sleep 0.3; until [ "$(info "$port" aof_rewrite_in_progress)" = 0 ]; do sleep 0.1; done
    stop "$served"
  done
  local pinned=("${pin[@]}")
  pin=() # both may use what they can
  for form in base log; do
    for name in ours redis; do
      for i in $(seq "$rounds"); do
        $name "$port" "$form-$name" --appendonly yes; loaded "$port"
        if [ $name = ours ]; then info "$port" load_duration_ms
        else sed -n 's/.*DB loaded from .*: \([0-9.]*\) seconds.*/\1/p' "$files/log-$port" | tail -1 | awk '{print $1 * 1000}'; fi
        stop "$served"
      done >"$files/times"
      local median=$(sort -n "$files/times" | sed -n "$(((rounds + 1) / 2))p")
      write "| $name, $form | $(awk "BEGIN {printf \"%.1f\", $(size "$files/$form-$name") / $keys}") | $(middle <"$files/times") | $(awk "BEGIN {printf \"%.2f million\", $keys / $median / 1000}") |"
    done
  done
  pin=("${pinned[@]}")
  write ''
}

# resident PID... adds up private and shared memory of processes, in KiB.
resident() { for pid; do awk '/^Pss:/ {print $2}' "/proc/$pid/smaps_rollup" 2>/dev/null || true; done | awk '{n += $1} END {print n + 0}'; }

# With one core, clients wait for the scheduler, not for the server: so there are two here.
rewrite() {
  local pin=("${pin[@]}")
  [ ${#pin[@]} = 0 ] || [ "$(nproc)" -lt 3 ] || pin=(taskset -c 0,1)
  section 'BGREWRITEAOF with clients' "$keys keys, 20,000 commands a second over 50 connections in an open loop, for $open. Rewrites follow one another. Latencies are in µs. The server has two cores."
  write '| server | rewrites | p99 | p99.9 | memory before, KiB | at most, KiB |' '|---|---|---:|---:|---:|---:|'
  local name when
  for name in ours redis; do
    $name "$port" "rewrite-$name" --appendonly yes
    local command=$throttle pid=$served
    [ $name = ours ] || command=$set_tat
    fill "$port" "$command"
    for when in no yes no yes; do
      local before=$(resident "$pid") most=0 now
      "${load[@]}" run --target "127.0.0.1:$port" --command "$command" --keys "$keys" --key-width 11 -c 50 --rate 20000 --threads 1 -d "$open" --quiet --no-check --json "$files/result" >/dev/null &
      local loader=$!
      while kill -0 $loader 2>/dev/null; do
        [ $when = no ] || redis-cli -p "$port" BGREWRITEAOF >/dev/null
        now=$(resident "$pid" $(pgrep -P "$pid" || true)); [ "$now" -le "$most" ] || most=$now
        sleep 0.05
      done
      wait $loader || true
      write "| $name | $when | $(latency p99) | $(latency p99.9) | $before | $most |"
    done
    stop "$pid"
  done
  write ''
}

# latency NAME prints a percentile of the last result.
latency() { tr -d ' \n' <"$files/result" | grep -o "\"$1\":[0-9.]*" | head -1 | cut -d: -f2; }

fault() {
  section 'Recovery from one failed fsync' "$keys keys with appendfsync everysec. strace makes one fdatasync fail with EIO."
  command -v strace >/dev/null || { write 'SKIP: no strace.' ''; return; }
  ours "$port" fault --appendonly yes
  local pid=$served began=0 ended=0 reply
  fill "$port" "$throttle"
  strace -f -qq -p "$pid" -o /dev/null -e trace=fdatasync -e inject=fdatasync:error=EIO:when=1 & local tracer=$!
  for _ in $(seq 3000); do
    reply=$(redis-cli -p "$port" CL.THROTTLE probe 1000000 1 60 2>&1 | head -1)
    case $reply in
      *MISCONF*) if [ $began = 0 ]; then began=$(date +%s%N); kill $tracer 2>/dev/null || true; fi ;;
      *) if [ $began != 0 ]; then ended=$(date +%s%N); break; fi ;;
    esac
  done
  kill $tracer 2>/dev/null || true
  write "Commands with an effect were refused for $(((ended - began) / 1000000)) ms; aof_faults:$(info "$port" aof_faults)." ''
  stop "$pid"
}

make build
go -C tools/bench build -trimpath -o "$PWD/bin/" ./cellbench
mkdir -p "$(dirname "$out")"
header
for part in $only; do "$part"; done
say "written: $out"
