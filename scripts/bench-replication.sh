#!/usr/bin/env bash
# bench-replication.sh CELLSERVER CELLBENCH: what a replica costs cellserver and redis-server with the
# module redis-cell beside each other, in one run of about three minutes. Calls of CL.THROTTLE are
# allowed and so have an effect. Each line has two figures and their ratio, and the bound that
# cellserver is to keep. A figure is the least of rounds in turn, since a busy machine is not as fast
# at one time as at another. Latencies are those of the whole machine: with other work on it they say
# little. It needs redis-server, redis-benchmark, redis-cli, Linux, and
# cargo to build redis-cell once. ROUNDS (8), REQUESTS (100000), KEYS (200000), RATE (5000 calls
# per second while latencies are measured) and BENCH_PORT (27600) change what their names say.
set -euo pipefail
cellserver=$(realpath "$1") cellbench=$(realpath "$2")
rounds=${ROUNDS:-8} n=${REQUESTS:-100000} keys=${KEYS:-200000} rate=${RATE:-5000} port=${BENCH_PORT:-27600}
module=$(bash "$(dirname "$0")/redis-cell.sh")
dir=$(mktemp -d)
declare -A pids ports least
trap 'kill -CONT "${pids[@]}" 2>/dev/null || true; kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
echo "load of the machine before: $(cut -d' ' -f1-3 /proc/loadavg)"

# serve NAME PROGRAM OPTION... starts a server.
serve() {
	local name=$1
	mkdir "$dir/$name"
	"$2" --port "$port" --dir "$dir/$name" --save "" "${@:3}" >"$dir/$name/out" 2>&1 &
	pids[$name]=$! ports[$name]=$port port=$((port + 1))
	until redis-cli -p "${ports[$name]}" PING 2>/dev/null | grep -q PONG; do
		kill -0 "${pids[$name]}" 2>/dev/null || { echo "the server on port ${ports[$name]} has not started; BENCH_PORT chooses others" >&2; exit 1; }
		sleep 0.1
	done
}
ask() { redis-cli -p "${ports[$1]}" "${@:2}"; }
info() { ask "$1" INFO "$2" | tr -d '\r' | sed -n "s/^$3://p"; }
linked() { until [ "$(info "$1" replication master_link_status)" = up ]; do sleep 0.02; done; }
redis=(redis-server --loadmodule "$module" --repl-diskless-sync yes --repl-diskless-sync-delay 0 --repl-diskless-load swapdb)
for name in alone fed; do
	serve "cell-$name" "$cellserver" --io-threads 1
	serve "file-$name" "$cellserver" --io-threads 1 --appendonly yes
	serve "redis-$name" "${redis[@]}"
done
serve acks-fed "$cellserver" --io-threads 1 --repl-ack-replies 1
serve always-alone "$cellserver" --io-threads 1 --appendonly yes --appendfsync always
serve cell-replica "$cellserver" --replicaof "127.0.0.1 ${ports[cell-fed]}"
serve file-replica "$cellserver" --replicaof "127.0.0.1 ${ports[file-fed]}"
serve redis-replica "${redis[@]}" --replicaof "127.0.0.1 ${ports[redis-fed]}"
serve acks-replica "$cellserver" --replicaof "127.0.0.1 ${ports[acks-fed]}"
for name in cell file redis acks; do linked $name-replica; done

cpu() { cat "/proc/$1/task/"*/schedstat | awk '{sum += $1} END {printf "%.0f", sum}'; } # nanoseconds
offset() { info "$1" replication master_repl_offset; }
least() { ((${least[$1]:-$2 + 1} <= $2)) || least[$1]=$2; } # NAME FIGURE
# told WHAT UNIT FIGURE OTHER BOUND: two figures, the first divided by the other.
told() {
	awk -v what="$1" -v unit="$2" -v a="$3" -v b="$4" -v bound="$5" 'BEGIN {
		r = b ? a / b : 0; kept = bound == "-" ? "" : sprintf(" (bound %s%s)", bound, (bound ~ /^>/ ? r < substr(bound, 2) : r > bound) ? ", NOT KEPT" : "")
		printf "%-52s %8d / %8d %s = %.3f%s\n", what, a, b, unit, r, kept }'
}

# What the primary needs for a command, and how long its stream becomes.
# The module replicates nothing in this version: a SET stands for it that keeps the same.
tat=$(($(date +%s) + 86400))
declare -A words=([cell]="CL.THROTTLE user:__rand_int__ 1000000 1 60" [redis]="SET user:__rand_int__ ${tat}000000000 PXAT ${tat}000")
words[file]=${words[cell]} words[acks]=${words[cell]} words[always]=${words[cell]}
# load NAME DEPTH: calls of 50 clients. It leaves what the server used for one, in nanoseconds, in used, and how long
# all took for one, in nanoseconds, in spent.
load() {
	local before begun
	before=$(cpu "${pids[$1]}") begun=${EPOCHREALTIME/./}
	# shellcheck disable=SC2086 # the words of a command
	redis-benchmark -p "${ports[$1]}" -c 50 -P "$2" -n "$n" -r 100000 -q ${words[${1%-*}]} >"$dir/speed" 2>&1
	spent=$(((${EPOCHREALTIME/./} - begun) * 1000 / n)) used=$((($(cpu "${pids[$1]}") - before) / n))
}
for ((round = 0; round <= rounds; round++)); do
	for name in {cell,file,redis}-{alone,fed}; do
		at=$(offset "$name")
		load "$name" 32
		((round == 0)) && continue # keys are made
		least "$name" $used
		least "$name-stream" $((($(offset "$name") - at) * 100 / n))
	done
done
told "CPU, with a replica to none" "ns" "${least[cell-fed]}" "${least[cell-alone]}" 1.05
told "CPU, with a replica to none, appendonly yes" "ns" "${least[file-fed]}" "${least[file-alone]}" 1.05
told "CPU, with a replica to none, SET of redis-server" "ns" "${least[redis-fed]}" "${least[redis-alone]}" -
told "stream, CL.THROTTLE to SET of redis-server" "bytes per 100 commands" "${least[cell-fed-stream]}" "${least[redis-fed-stream]}" 0.5

# A reply that waits for a replica, beside one that waits for the disk.
for ((round = 0; round <= rounds; round++)); do
	for depth in 1 32; do
		for name in acks-fed always-alone; do
			load $name $depth
			((round == 0)) && continue
			least "$name-$depth" $used
			least "$name-$depth-spent" $spent
		done
	done
done
for depth in 1 32; do
	told "CPU, repl-ack-replies 1 to appendfsync always, -P $depth" "ns" "${least[acks-fed-$depth]}" "${least[always-alone-$depth]}" 1
	told "calls, repl-ack-replies 1 to appendfsync always, -P $depth" "per second" \
		$((1000000000 / least[acks-fed-$depth-spent])) $((1000000000 / least[always-alone-$depth-spent])) ">1"
done

bench() { "$cellbench" run --quiet --no-check "$@"; }
# call FD WORD... sends a command on a connection that is open, and leaves its reply, a line or a bulk string, in reply.
call() {
	local fd=$1 w sent="*$(($# - 1))"$'\r\n'
	for w in "${@:2}"; do sent+="\$${#w}"$'\r\n'"$w"$'\r\n'; done
	printf '%s' "$sent" >&"$fd"
	IFS= read -r -u "$fd" reply
	case $reply in '$-1'*) reply= ;; '$'*) IFS= read -r -u "$fd" reply ;; esac
	reply=${reply%$'\r'}
}
# lag NAME: the 99th percentile of how long a value takes from the reply of the primary until a client of the
# replica sees it, in microseconds, at 80 % of what the primary does with the same 50 clients.
lag() {
	local most load i begun
	most=$(bench --target "${ports[$1-fed]}" -c 50 -d 2s --warmup 300ms --json "$dir/most" >/dev/null; field most '"per_second": {' '"median"')
	bench --target "${ports[$1-fed]}" -c 50 --rate $((${most%.*} * 8 / 10)) -d 4s --warmup 0s >/dev/null &
	load=$!
	exec 3<>"/dev/tcp/127.0.0.1/${ports[$1-fed]}" 4<>"/dev/tcp/127.0.0.1/${ports[$1-replica]}"
	sleep 0.5
	for ((i = 1; i <= 300; i++)); do
		call 3 SET probe $i
		begun=${EPOCHREALTIME/./}
		until call 4 GET probe && [ "$reply" = $i ]; do :; done
		echo $((${EPOCHREALTIME/./} - begun))
	done | sort -n | awk '{a[NR] = $1} END {print a[int(NR * 0.99)]}'
	exec 3>&- 4>&-
	wait $load || true
}
# field FILE AFTER NAME: the first figure of that name behind a line of a result of cellbench.
field() { awk -v after="$2" -v name="$3" 'index($0, after) {on = 1} on && index($0, name) {gsub(/[^0-9.]/, "", $NF); print $NF; exit}' "$dir/$1"; }
ours=$(lag cell) theirs=$(lag redis)
told "lag at 80 % load, p99, to 10 ms" "µs" "$ours" 10000 1
told "lag at 80 % load, p99, to redis-server" "µs" "$ours" "$theirs" -

# resync NAME: a full sync. It leaves how long it took, in milliseconds, in took.
resync() {
	local begun full
	full=$(info "$1-fed" stats sync_full)
	ask "$1-replica" REPLICAOF NO ONE >/dev/null
	begun=${EPOCHREALTIME/./}
	ask "$1-replica" REPLICAOF 127.0.0.1 "${ports[$1-fed]}" >/dev/null
	linked "$1-replica"
	took=$(((${EPOCHREALTIME/./} - begun) / 1000))
	(($(info "$1-fed" stats sync_full) == full + 1)) || { echo "$1 has not made one full sync" >&2; exit 1; }
}
for name in cell redis; do
	ask $name-fed FLUSHALL >/dev/null
	bench --target "${ports[$name-fed]}" --command 'CL.THROTTLE k{key} 15 1 3600' --choose flood -n "$keys" --warmup 0s -c 16 -P 64 >/dev/null
done
for _ in 1 2 3; do
	for name in cell redis; do resync $name; least $name-sync "$took"; done
done
told "full sync, cellserver to redis-server, diskless" "keys per second" $((keys * 1000 / least[cell-sync])) $((keys * 1000 / least[redis-sync])) ">1"

# latency NAME: what calls at a constant rate take in two seconds. It leaves p99 and p99.9, in microseconds.
latency() {
	bench --target "${ports[$1-fed]}" --rate "$rate" --keys 10000 -d 2s --warmup 200ms --json "$dir/latency-$1" >/dev/null
	p99=$(field "latency-$1" '"latency_us"' '"p99"') p99=${p99%.*}
	p999=$(field "latency-$1" '"latency_us"' '"p99.9"') p999=${p999%.*}
}
for _ in 1 2; do
	for name in cell redis; do
		latency $name
		least $name-p99 "$p99"; least $name-p999 "$p999"
		(while [ ! -e "$dir/enough" ]; do resync $name; done) & syncs=$!
		latency $name
		least $name-sync-p99 "$p99"
		touch "$dir/enough"; wait $syncs; rm "$dir/enough"
		kill -STOP "${pids[$name-replica]}"
		latency $name
		kill -CONT "${pids[$name-replica]}"
		least $name-stop-p999 "$p999"
	done
done
for name in cell redis; do
	whose=$([ $name = cell ] || echo ", redis-server")
	told "p99 during full syncs to that before$whose" "µs" "${least[$name-sync-p99]}" "${least[$name-p99]}" "$([ $name = cell ] && echo 1.5 || echo -)"
	told "p99.9 with a stopped replica to that before$whose" "µs" "${least[$name-stop-p999]}" "${least[$name-p999]}" "$([ $name = cell ] && echo 1.1 || echo -)"
done
echo "load of the machine behind: $(cut -d' ' -f1-3 /proc/loadavg)"
