#!/bin/sh
# Records the files of a build of cellserver for TestRecordedFiles of compat_test, which says what a
# server answers that starts with them. It needs redis-cli. Commands that the build does not know
# are answered with an error, and leave nothing.
#
# usage: scripts/record-files.sh PROGRAM compat_test/testdata/files/NAME
set -eu
[ $# -eq 2 ] || { sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
program=$1 out=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$program" --dir "$dir" --appendonly yes --port 0 --unixsocket "$dir/s" --auto-aof-rewrite-percentage 0 >"$dir/log" 2>&1 &
server=$!
say() { redis-cli -s "$dir/s" "$@" >>"$dir/answers" 2>&1 || true; }
until redis-cli -s "$dir/s" PING 2>/dev/null | grep -q PONG; do
	kill -0 "$server" || { cat "$dir/log" >&2; exit 1; }
	sleep 0.1
done

say <<'END'
SET string "a value"
SET "another \x00\xff key" 12345
SET gone 1
HSET hash f1 v1 f2 v2
ZADD zset 1.5 a 2.5 b
RPUSH list a b c
SADD set a b c
CL.THROTTLE cl 15 30 100000000 4
SW.ALLOW counter 10 100000000 3
SW.ALLOW fixed 10 100000000 3 FIXED
SW.ALLOW log 10 100000000 3 LOG
SW.ALLOW buckets 10 100000000 3 BUCKETS 10
TB.ACQUIRE greedy 10 1 100000000 3
TB.ACQUIRE interval 10 1 100000000 3 INTERVAL
TB.ACQUIRE leaky 10 1 100000000 3 LEAKY
TB.ACQUIRE warmup 10 1 100000000 3 WARMUP 1000
CC.ACQUIRE leases 5 100000000 m1
RL.POLICY SET api COMMENT "it has \"quotes\"" LIMITS TB 10 1 100000000 SW 20 100000000 LOG
RL.POLICY SET gone LIMITS TB 1 1 1
RL.OVERRIDE SET api "acme*" COMMENT text LIMITS TB 100 1 1
RL.BLOCK api "bad\xff" EX 100000000 REASON spam
RL.EXEMPT api good EX 100000000
RL.BOOST api busy 1.5 EX 100000000
RL.USE api alice 2
END
say SAVE
say <<'END'
DEL gone
HSET hash f3 v3
HDEL hash f1
ZADD zset 9 c
ZREM zset a
LPUSH list z
RPOP list
SADD set d
SREM set a
CL.THROTTLE cl 15 30 100000000 4
SW.ALLOW counter 10 100000000 2
SW.ALLOW fixed 10 100000000 2 FIXED
SW.ALLOW log 10 100000000 2 LOG
SW.ALLOW buckets 10 100000000 2 BUCKETS 10
TB.ACQUIRE greedy 10 1 100000000 2
CC.ACQUIRE leases 5 100000000 m2
CC.RELEASE leases m1
SELECT 3
SET "in three" 3
SELECT 0
RL.POLICY DEL gone
RL.USE api alice 2
END
cat "$dir/answers" >&2
kill "$server"
wait "$server" || true
mkdir -p "$out"
rm -f "$out"/*
cp "$dir"/appendonlydir/cellserver.manifest "$dir"/appendonlydir/*.snap "$dir"/appendonlydir/*.log "$out"
