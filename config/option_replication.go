package config

import (
	"errors"
	"strconv"
	"strings"
)

// replicationOptions returns the options of replicas and primaries.
func replicationOptions() []option {
	return []option{
		{name: "replicaof", alias: "slaveof", def: "", kind: primary{}, doc: "Host and port of the primary of this replica. Empty, or no one, makes the server a primary. REPLICAOF changes the value, and CONFIG REWRITE writes it."},
		{name: "masteruser", def: "", kind: text{}, mutable: true, doc: "User as whom a replica logs in to its primary. Empty stands for the user default."},
		{name: "masterauth", def: "", kind: text{}, mutable: true, secret: true, doc: "Password with which a replica logs in to its primary. Empty logs in without."},
		{name: "tls-replication", def: "no", kind: boolean{}, mutable: true, doc: "Speak TLS with the primary."},
		{name: "replica-priority", alias: "slave-priority", def: "100", kind: integer{0, 1<<31 - 1, ""}, mutable: true, doc: "Sentinel promotes the replica with the lowest priority. It never promotes one with 0."},
		{name: "replica-announce-ip", alias: "slave-announce-ip", def: "", kind: text{}, mutable: true, doc: "Address of this replica that it reports to its primary, for Sentinel and clients. Empty means the address that the primary sees."},
		{name: "replica-announce-port", alias: "slave-announce-port", def: "0", kind: integer{0, 65535, ""}, mutable: true, doc: "Port of this replica that it reports to its primary. 0 means the port that it listens on."},
		{name: "replica-announced", def: "yes", kind: boolean{}, mutable: true, doc: "Whether Sentinel learns of this replica."},
		{name: "replica-serve-stale-data", alias: "slave-serve-stale-data", def: "yes", kind: boolean{}, mutable: true, doc: "Whether a replica without a link to its primary answers commands that read. With no it replies with -MASTERDOWN."},
		{name: "repl-timeout", def: "60", kind: integer{1, 1<<31 - 1, "s"}, mutable: true, doc: "Time without any data after which a primary or a replica closes the link between them."},
		{name: "repl-ping-replica-period", alias: "repl-ping-slave-period", def: "10", kind: integer{1, 1<<31 - 1, "s"}, mutable: true, doc: "Period of the PINGs that a primary sends to its replicas while it has nothing else to send."},
		{name: "repl-backlog-size", def: "16mb", kind: size{1, 1 << 40}, mutable: true, doc: "Size of the replication backlog. A replica that reconnects within its changes needs no full resynchronization."},
		{name: "repl-backlog-ttl", def: "3600", kind: integer{0, 1<<31 - 1, "s"}, mutable: true, doc: "Time after which a primary without replicas frees the replication backlog. 0 never does."},
		{name: "min-replicas-to-write", alias: "min-slaves-to-write", def: "0", kind: integer{0, 1<<31 - 1, ""}, mutable: true, doc: "Number of replicas that a primary needs, else it refuses writes with -NOREPLICAS. 0 needs none."},
		{name: "min-replicas-max-lag", alias: "min-slaves-max-lag", def: "10", kind: integer{0, 1<<31 - 1, "s"}, mutable: true, doc: "Longest time since the last acknowledgement of a replica that counts for min-replicas-to-write. 0 disables min-replicas-to-write."},
		{name: "repl-ack-replies", def: "0", kind: integer{0, 1000, ""}, mutable: true, doc: "Number of replicas that must have a write before the server replies to it. A failover then loses no decision that was answered. 0 does not wait."},
		{name: "repl-ack-timeout", def: "1000", kind: integer{1, 1<<31 - 1, "ms"}, mutable: true, doc: "Time in milliseconds that repl-ack-replies waits. After it the reply is -NOREPLICAS, and the write remains in effect."},
		{name: "repl-refuse-empty", def: "yes", kind: boolean{}, mutable: true, doc: "Let a replica with keys or policies refuse a primary with another data set, such as one that was restarted without its files. A server that was restored from a backup refuses all other data sets, too."},
	}
}

// primary is the kind of replicaof: a host and a port, or nothing for a primary.
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

// maxHost is the maximum length of the name of a host, as in DNS (RFC 1035).
const maxHost = 255
