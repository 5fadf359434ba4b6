package config

import (
	"errors"
	"strings"
	"time"

	"github.com/cellserver/cellserver/env"
)

// clientOptions returns the options that bound clients and the data that they send and receive.
func clientOptions() []option {
	return []option{
		{name: "databases", def: "16", kind: integer{1, 16, ""}, doc: "Number of databases for SELECT."},
		{name: "maxclients", def: "10000", kind: integer{1, 1 << 20, ""}, mutable: true, doc: "Maximum number of clients. The server lowers it at the start if there are too few file descriptors."},
		{name: "max-clients-per-ip", def: "0", kind: integer{0, 1 << 20, ""}, mutable: true, doc: "Maximum number of clients of one address. 0 means no bound."},
		{name: "timeout", def: "0", kind: integer{0, 1<<31 - 1, "s"}, mutable: true, doc: "Close a client after this many idle seconds. 0 never does."},
		{name: "partial-timeout", def: "30", kind: integer{1, 1<<31 - 1, "s"}, mutable: true, doc: "Close a client whose command is still incomplete after this time."},
		{name: "auth-timeout", def: "10", kind: integer{1, 1<<31 - 1, "s"}, mutable: true, doc: "Close a client that has not authenticated within this time."},
		{name: "write-timeout", def: "5", kind: integer{1, 3600, "s"}, doc: "Close a client that reads none of its replies for this time, or for a quarter of it while other clients wait for the memory of its long reply."},
		{name: "tcp-keepalive", def: "300", kind: integer{0, 1<<31 - 1, "s"}, doc: "Period of TCP keep-alive probes. 0 sends none."},
		{name: "proto-max-bulk-len", def: "32mb", kind: size{1 << 10, 512 << 20}, mutable: true, doc: "Longest argument of a command, and so the longest value. A command with a longer one is refused. 32mb is 32 times the default of memcached. Keep longer values elsewhere, because a value is copied while its shard of the keys is locked."},
		{name: "client-query-buffer-limit", def: "33mb", kind: size{16 << 10, 1 << 30}, mutable: true, doc: "Longest whole command. A command beyond this, or beyond half of maxmemory-clients, is refused."},
		{name: "client-output-backlog", def: "256kb", kind: size{16 << 10, 64 << 20}, doc: "Unread replies of a client above which the server reads no more of its commands."},
		{name: "client-output-buffer-limit", def: defaultOutputLimits, kind: outputLimits{}, mutable: true, doc: "Bounds on the unread bytes of each class of clients: a hard limit, a soft limit, and the seconds for which the soft limit may be exceeded. Only the bounds of pubsub have an effect."},
	}
}

// outputLimits is the kind of client-output-buffer-limit, in the form of Redis: for each class of
// clients a hard limit, a soft limit, and the seconds for which the soft limit may be exceeded. A
// value need not have all classes: parse gives the others their defaults, and change leaves them
// unchanged.
type outputLimits struct{}

// defaultOutputLimits is the default of Redis. Only the limits of pubsub have an effect here:
// client-output-backlog bounds the replies of other clients, and repl-backlog-size the data that
// waits for a replica.
const defaultOutputLimits = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"

// outputClasses are the classes of clients, in the order in which CONFIG GET shows them.
var outputClasses = []string{"normal", "slave", "pubsub"}

func (k outputLimits) parse(v string) (string, error) { return k.change(defaultOutputLimits, v) }

// change returns the value old with the limits of the classes that v names replaced. A class or a
// value that is not valid is an error in the words of Redis.
func (outputLimits) change(old, v string) (string, error) {
	fields, given := strings.Fields(old), strings.Fields(v)
	if len(given)%4 != 0 {
		return "", errors.New("Wrong number of arguments in buffer limit configuration.") //nolint:revive,staticcheck // Redis' words
	}
	for ; len(given) > 0; given = given[4:] {
		at := outputClass(given[0])
		if at < 0 {
			return "", errors.New("Invalid client class specified in buffer limit configuration.") //nolint:revive,staticcheck // Redis' words
		}
		for i, kind := range []kind{size{0, 1 << 50}, size{0, 1 << 50}, integer{0, 1<<31 - 1, "s"}} {
			value, err := kind.parse(given[1+i])
			if err != nil {
				return "", errors.New("Error in hard, soft or soft_seconds setting in buffer limit configuration.") //nolint:revive,staticcheck // Redis' words
			}
			fields[4*at+1+i] = value
		}
	}
	return strings.Join(fields, " "), nil
}

func (outputLimits) hint() string { return "class hard soft seconds ..." }

// outputClass returns the index of the class called name, in any case; -1 if there is none. The
// class replica is also called slave.
func outputClass(name string) int {
	if strings.EqualFold(name, "replica") {
		name = "slave"
	}
	for i, c := range outputClasses {
		if strings.EqualFold(name, c) {
			return i
		}
	}
	return -1
}

// ofSubscribers returns the limits of pubsub in v, which parse has accepted.
func (outputLimits) ofSubscribers(v string) env.OutputLimit {
	f := strings.Fields(v)[4*outputClass("pubsub"):]
	return env.OutputLimit{
		Hard: int(number(f[1])),
		Soft: int(number(f[2])),
		For:  time.Duration(number(f[3])) * time.Second,
	}
}
