#!/usr/bin/env bash
# bench-observability.sh CELLSERVER [OTHER]: what groups of metrics, SLOWLOG and rules of users cost
# a CL.THROTTLE in a pipeline of 32: processor time of the whole server, the least of ROUNDS (25)
# short rounds in turn, since a busy machine is not as fast at one time as at another. OTHER is
# another build of the server to compare with. It needs redis-benchmark and redis-cli, and Linux.
set -euo pipefail
cellserver=$(realpath "$1") rounds=${ROUNDS:-25} n=${REQUESTS:-100000} port=${BENCH_PORT:-27500}
names=(default groups-off slowlog-off unrestricted prefix)
declare -A pids ports least login=([unrestricted]="--user unrestricted -a x" [prefix]="--user prefix -a x")
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT

serve() { # NAME PROGRAM OPTION...
	local name=$1
	ports[$name]=$port
	"$2" --port "$port" --save "" --appendonly no --io-threads 1 "${@:3}" >/dev/null 2>&1 &
	pids[$name]=$! port=$((port + 1))
}
serve default "$cellserver"
serve groups-off "$cellserver" --metrics-group-by none --metrics-max-groups 0
serve slowlog-off "$cellserver" --slowlog-log-slower-than -1
if [ $# -gt 1 ]; then
	serve other "$(realpath "$2")"
	names+=(other)
fi
sleep 1
for name in "${!pids[@]}"; do
	kill -0 "${pids[$name]}" 2>/dev/null || { echo "the server on port ${ports[$name]} has not started; BENCH_PORT chooses others" >&2; exit 1; }
done
pids[unrestricted]=${pids[default]} ports[unrestricted]=${ports[default]}
pids[prefix]=${pids[default]} ports[prefix]=${ports[default]}
redis-cli -p "${ports[default]}" ACL SETUSER unrestricted on '>x' '~*' '&*' +@all >/dev/null
redis-cli -p "${ports[default]}" ACL SETUSER prefix on '>x' '~user:*' +@all >/dev/null

cpu() { cat "/proc/$1/task/"*/schedstat | awk '{sum += $1} END {printf "%.0f", sum}'; } # nanoseconds
for ((round = 0; round <= rounds; round++)); do
	for name in "${names[@]}"; do
		before=$(cpu "${pids[$name]}")
		# shellcheck disable=SC2086 # a login is several words
		redis-benchmark -p "${ports[$name]}" ${login[$name]:-} -c 16 -P 32 -n "$n" -r 100000 -q CL.THROTTLE user:__rand_int__ 15 30 60 >/dev/null 2>&1
		used=$((($(cpu "${pids[$name]}") - before) / n))
		((round == 0)) && continue # keys are made
		((used >= ${least[$name]:-used + 1})) || least[$name]=$used
	done
done
ratio() { awk -v a="${least[$2]}" -v b="${least[$3]}" -v what="$1" 'BEGIN {printf "%-44s %4d ns / %4d ns = %.3f\n", what, a, b, a / b}'; }
ratio "groups of metrics, on to off" default groups-off
ratio "SLOWLOG, on to off" default slowlog-off
ratio "unrestricted user, to the default user" unrestricted default
ratio "user of one prefix, to the default user" prefix default
[ $# -lt 2 ] || ratio "this build to the other" default other
