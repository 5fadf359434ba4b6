package config

import (
	"errors"
	"strconv"
	"strings"
)

// replicationOptions are whom the server follows, and how it serves those who follow it.
func replicationOptions() []option {
	return []option{
		{name: "replicaof", alias: "slaveof", def: "", kind: primary{}, doc: "Host and port of the primary that this server is a replica of. Empty, or no one, makes it a primary. REPLICAOF changes it, and CONFIG REWRITE keeps that."},
		{name: "masteruser", def: "", kind: text{}, mutable: true, doc: "User as whom a replica logs in to its primary. Empty stands for the user default."},
		{name: "masterauth", def: "", kind: text{}, mutable: true, secret: true, doc: "Password with which a replica logs in to its primary. Empty logs in without."},
		{name: "tls-replication", def: "no", kind: boolean{}, mutable: true, doc: "Speak TLS with the primary."},
		{name: "replica-priority", alias: "slave-priority", def: "100", kind: integer{0, 1<<31 - 1, ""}, mutable: true, doc: "Sentinel promotes the replica with the lowest priority. It never promotes one with 0."},
		{name: "replica-announce-ip", alias: "slave-announce-ip", def: "", kind: text{}, mutable: true, doc: "Address that a replica tells its primary, for others to find it. Empty leaves it to the primary to see."},
		{name: "replica-announce-port", alias: "slave-announce-port", def: "0", kind: integer{0, 65535, ""}, mutable: true, doc: "Port that a replica tells its primary. 0 stands for the one it listens on."},
		{name: "replica-announced", def: "yes", kind: boolean{}, mutable: true, doc: "Let Sentinel know of this replica."},
		{name: "replica-serve-stale-data", alias: "slave-serve-stale-data", def: "yes", kind: boolean{}, mutable: true, doc: "Answer commands that read while a replica has no link to its primary. no answers -MASTERDOWN."},
		{name: "repl-timeout", def: "60", kind: integer{1, 1<<31 - 1, "s"}, mutable: true, doc: "Time after which a link between a primary and a replica is given up on which nothing has come."},
		{name: "repl-ping-replica-period", alias: "repl-ping-slave-period", def: "10", kind: integer{1, 1<<31 - 1, "s"}, mutable: true, doc: "Time after which a primary that has nothing to send tells its replicas that it is there."},
		{name: "repl-backlog-size", def: "16mb", kind: size{1, 1 << 40}, mutable: true, doc: "Memory for the newest changes. A replica that was away for less needs only those."},
		{name: "repl-backlog-ttl", def: "3600", kind: integer{0, 1<<31 - 1, "s"}, mutable: true, doc: "Time after which a primary without replicas frees that memory. 0 never does."},
		{name: "min-replicas-to-write", alias: "min-slaves-to-write", def: "0", kind: integer{0, 1<<31 - 1, ""}, mutable: true, doc: "Number of replicas without which a primary refuses writes with -NOREPLICAS. 0 needs none."},
		{name: "min-replicas-max-lag", alias: "min-slaves-max-lag", def: "10", kind: integer{0, 1<<31 - 1, "s"}, mutable: true, doc: "Time since it was heard from for which a replica counts for min-replicas-to-write. 0 counts none, and needs none."},
		{name: "repl-ack-replies", def: "0", kind: integer{0, 1000, ""}, mutable: true, doc: "Hold the reply to a write until so many replicas have it. Then a failover loses no decision that was answered. 0 holds none."},
		{name: "repl-ack-timeout", def: "1000", kind: integer{1, 1<<31 - 1, "ms"}, mutable: true, doc: "Time in milliseconds after which such a reply becomes -NOREPLICAS. The decision stands."},
		{name: "repl-refuse-empty", def: "yes", kind: boolean{}, mutable: true, doc: "Let a replica with keys or policies refuse a primary that has another data set, as one does that has come back without its files. A server that was restored from a backup refuses all others, too."},
	}
}

// primary is the value of replicaof: a host and a port, or nothing.
type primary struct{}

func (primary) parse(v string) (string, error) {
	fields := strings.Fields(v)
	switch {
	case len(fields) == 0, len(fields) == 2 && strings.EqualFold(fields[0], "no") && strings.EqualFold(fields[1], "one"):
		return "", nil
	case len(fields) != 2:
		return "", errors.New("argument must be a host and a port")
	}
	port, err := strconv.ParseUint(fields[1], 10, 16)
	if err != nil {
		return "", errors.New("Invalid master port") //nolint:staticcheck // Redis' words
	}
	if len(fields[0]) > maxHost || strings.ContainsAny(fields[0], ",\"'\\\x00") {
		return "", errors.New("argument must be a host and a port")
	}
	return fields[0] + " " + strconv.FormatUint(port, 10), nil
}

func (primary) hint() string { return "host port" }

// maxHost bounds the name of a host, as DNS does (RFC 1035).
const maxHost = 255
