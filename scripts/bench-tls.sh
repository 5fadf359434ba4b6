#!/usr/bin/env bash
# bench-tls.sh CELLSERVER: what TLS costs cellserver and redis-server beside each other, in one
# run: the processor time of the server for a GET and for a CL.THROTTLE (of redis-server with the
# module redis-cell), the least of three rounds, and the memory of an idle connection. Each line
# ends with the ratio, and the bound that cellserver is to keep. It needs redis-server and
# redis-benchmark with TLS, openssl, and cargo to build redis-cell once.
set -euo pipefail
cellserver=$(realpath "$1"); requests=${REQUESTS:-300000} rounds=${ROUNDS:-3}
module=$(bash "$(dirname "$0")/redis-cell.sh")
dir=$(mktemp -d); cd "$dir"
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$dir"' EXIT
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
	-addext subjectAltName=IP:127.0.0.1 -keyout key -out crt 2>/dev/null
tls=(--port 0 --tls-cert-file crt --tls-key-file key --tls-ca-cert-file crt --tls-auth-clients no)
redis-server "${tls[@]}" --tls-port 27401 --save "" --loadmodule "$module" >/dev/null & redis=$!
"$cellserver" "${tls[@]}" --tls-port 27402 >/dev/null 2>&1 & cell=$!
declare -A ports=([redis]=27401 [cell]=27402) least
for name in redis cell; do
	until redis-cli -p "${ports[$name]}" --tls --insecure ping >/dev/null 2>&1; do kill -0 "${!name}"; sleep 0.1; done
done
cpu() { awk '{print ($14+$15)*10000}' "/proc/$1/stat"; } # microseconds
rss() { awk '/VmRSS/ {print $2}' "/proc/$1/status"; }    # KiB
load() { redis-benchmark -p "$1" --tls --insecure -c 16 -P "$2" -n "$3" -q "${@:4}" >/dev/null; }
# told WHAT UNIT BOUND: the figures in least, their ratio, and whether that is within the bound.
told() {
	awk -v what="$1" -v unit="$2" -v bound="$3" -v r="${least[redis]}" -v c="${least[cell]}" 'BEGIN {
		printf "%s: redis-server %d %s, cellserver %d %s, ratio %.2f (bound %s%s)\n", what, r, unit, c, unit, c/r, bound, (c/r > bound ? ", NOT KEPT" : "") }'
}
declare -A bounds=(["GET 1"]=1.35 ["GET 32"]=1.35 ["CL.THROTTLE 1"]=0.9 ["CL.THROTTLE 32"]=0.5)
for p in 1 32; do
	n=$((p == 1 ? requests / 6 : requests * 3))
	for args in "GET key" "CL.THROTTLE user 1000000 1000000 1"; do
		least=([redis]=- [cell]=-)
		for _ in $(seq "$rounds"); do
			for name in redis cell; do
				before=$(cpu "${!name}")
				# shellcheck disable=SC2086 # the words of a command
				load "${ports[$name]}" $p $n $args
				used=$(( ($(cpu "${!name}") - before) * 1000 / n ))
				[ "${least[$name]}" != - ] && [ $used -ge "${least[$name]}" ] || least[$name]=$used
			done
		done
		told "${args%% *} P=$p" "ns of processor time per command" "${bounds[${args%% *} $p]}"
	done
done
for name in redis cell; do
	before=$(rss "${!name}")
	redis-benchmark -p "${ports[$name]}" --tls --insecure -c 500 -I >/dev/null & idle=$!
	until [ "$(redis-cli -p "${ports[$name]}" --tls --insecure info clients | awk -F: '/^connected_clients/ {print $2+0}')" -gt 500 ]; do sleep 0.2; done
	sleep 1 # until what the last handshakes needed is given back
	least[$name]=$(( ($(rss "${!name}") - before) * 1024 / 500 ))
	kill $idle
done
told "idle connection" bytes 0.35
