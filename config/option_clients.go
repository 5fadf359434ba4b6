package config

// clientOptions are bounds on clients and on what they send and receive.
func clientOptions() []option {
	return []option{
		{name: "databases", def: "16", kind: integer{1, 16, ""}, doc: "Number of databases for SELECT."},
		{name: "maxclients", def: "10000", kind: integer{1, 1 << 20, ""}, mutable: true, doc: "Maximum number of clients. The server lowers it at the start if there are too few file descriptors."},
		{name: "max-clients-per-ip", def: "0", kind: integer{0, 1 << 20, ""}, mutable: true, doc: "Maximum number of clients of one address. 0 means no bound."},
		{name: "timeout", def: "0", kind: integer{0, 1<<31 - 1, "s"}, mutable: true, doc: "Close a client after this many idle seconds. 0 never does."},
		{name: "partial-timeout", def: "30", kind: integer{1, 1<<31 - 1, "s"}, mutable: true, doc: "Close a client whose command is still incomplete after this time."},
		{name: "auth-timeout", def: "10", kind: integer{1, 1<<31 - 1, "s"}, mutable: true, doc: "Close a client that has not authenticated within this time."},
		{name: "write-timeout", def: "5", kind: integer{1, 3600, "s"}, doc: "Close a client that takes none of its replies for this time, or for a quarter of it while others wait for the memory of a long reply."},
		{name: "tcp-keepalive", def: "300", kind: integer{0, 1<<31 - 1, "s"}, doc: "Period of TCP keep-alive probes. 0 sends none."},
		{name: "proto-max-bulk-len", def: "32mb", kind: size{1 << 10, 512 << 20}, mutable: true, doc: "Longest argument of a command, and so the longest value. A command with a longer one is refused. 32mb is 32 times the default of memcached. Keep longer values elsewhere: a value is copied while its part of the keys is locked."},
		{name: "client-query-buffer-limit", def: "33mb", kind: size{16 << 10, 1 << 30}, mutable: true, doc: "Longest whole command. A command beyond this, or beyond half of maxmemory-clients, is refused."},
		{name: "client-output-backlog", def: "256kb", kind: size{16 << 10, 64 << 20}, doc: "Unread replies of a client above which the server reads no more of its commands."},
		{name: "client-output-buffer-limit", def: defaultOutputLimits, kind: outputLimits{}, mutable: true, doc: "Bounds on the unread bytes of a class of clients: at any moment, and over a time. Only that of pubsub is in force."},
	}
}
