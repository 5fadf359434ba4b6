package config

// options returns all options of this server, in the order of the sample file. An option with the
// meaning of a Redis option has the name of that option.
func options() []option {
	var all []option
	for _, g := range optionGroups() {
		all = append(all, g.options...)
	}
	return all
}

// optionGroup has the options about one subject, with the title that --help prints above them.
type optionGroup struct {
	title   string
	options []option
}

// optionGroups returns all options of this server by group.
func optionGroups() []optionGroup {
	return []optionGroup{
		{"Network", networkOptions()},
		{"TLS", tlsOptions()},
		{"Users and policies", userOptions()},
		{"Clients", clientOptions()},
		{"Memory", memoryOptions()},
		{"Persistence", persistenceOptions()},
		{"Replication", replicationOptions()},
		{"Slow calls, latency, debugging", observeOptions()},
		{"Limits in a store", storeOptions()},
		{"Admin port", adminOptions()},
		{"Decisions over HTTP", httpOptions()},
		{"Envoy's rate limit service", serviceOptions()},
		{"Limits of Limitador", limitadorOptions()},
		{"Metrics", metricsOptions()},
		{"Process", processOptions()},
	}
}

// networkOptions returns the options about listening and serving connections.
func networkOptions() []option {
	return []option{
		{name: "bind", def: "127.0.0.1 -::1", kind: words{}, doc: "Addresses to listen on. * is all of IPv4, and ::* all of IPv6. Empty listens on none. An address that begins with '-' may be missing on this machine."},
		{name: "port", def: "6379", kind: integer{0, 65535, ""}, mutable: true, doc: "TCP port. 0 listens on no port. Changing it keeps open connections."},
		{name: "tcp-backlog", def: "511", kind: integer{1, 65535, ""}, doc: "Connections that the kernel holds until the server accepts them."},
		{name: "transport", def: "auto", kind: choice{"auto", "epoll", "goroutine"}, doc: "How connections are served: by an event loop per core (Linux), or by a goroutine each."},
		{name: "io-threads", def: "0", kind: integer{0, 128, ""}, doc: "Number of event loops. 0 means one per core, at most 8."},
		{name: "unixsocket", def: "", kind: text{}, doc: "Path of a Unix socket to listen on."},
		{name: "unixsocketperm", def: "700", kind: octal{}, doc: "Permissions of the Unix socket, in octal."},
	}
}

// userOptions returns the options about users, permissions and policies.
func userOptions() []option {
	return []option{
		{name: "protected-mode", def: "yes", kind: boolean{}, mutable: true, doc: "Serve only clients on this machine while the user default needs no password."},
		{name: "requirepass", def: "", kind: text{}, mutable: true, secret: true, doc: "Password of the user default. With an empty one all clients are authenticated."},
		{name: "aclfile", def: "", kind: text{}, doc: "File of users, with a line 'user name rule ...' for each. ACL LOAD reads it again, and ACL SAVE writes it. It excludes lines 'user' in the configuration."},
		{name: "policy-file", def: "", kind: text{}, doc: "File of policies and overrides in YAML, read at the start, on SIGHUP and by RL.POLICY RELOAD. Commands cannot change what it defines. With store it is for this server alone."},
		{name: "acl-pubsub-default", def: "resetchannels", kind: choice{"resetchannels", "allchannels"}, mutable: true, doc: "Channels of a new user: none, or all."},
		{name: "acllog-max-len", def: "128", kind: integer{0, 10_000, ""}, mutable: true, doc: "Maximum number of entries of ACL LOG."},
		{name: "acl-keyspace-needs-allkeys", def: "yes", kind: boolean{}, mutable: true, doc: "Let only users with access to all keys run KEYS, SCAN, RANDOMKEY, FLUSHDB and FLUSHALL. In Redis the permission for the command is enough."},
	}
}

// memoryOptions returns the options that bound memory and the size of values.
func memoryOptions() []option {
	return []option{
		{name: "maxmemory", def: "0", kind: size{0, 1 << 50}, mutable: true, doc: "Memory for keys and clients above which new keys are refused. 0 means no bound."},
		{name: "maxmemory-clients", def: "10%", kind: sizeOrShare{size{0, 1 << 50}}, mutable: true, doc: "Memory for all clients together: bytes, or a percentage of maxmemory. Above it, the clients that take most are closed, or the command that they are sending is refused. 0 means no bound."},
		{name: "maxmemory-policy", def: "noeviction", kind: evictionPolicy{}, mutable: true, doc: "What happens when memory is full: existing limiters continue, and new keys are refused."},
		{name: "sw-log-max-entries", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Largest limit of SW.ALLOW LOG, which keeps an entry for each distinct instant."},
		{name: "cc-max-members", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Maximum number of leases of one CC.ACQUIRE key."},
		{name: "id-ttl", def: "60", kind: integer{1, 86400, ""}, mutable: true, doc: "Time in seconds for which a call with ID is remembered, so that its repetition charges nothing."},
		{name: "id-max-per-key", def: "10000", kind: integer{1, 1_000_000, ""}, mutable: true, doc: "Maximum number of calls with ID that a key remembers. Beyond it, the oldest are forgotten."},
		{name: "reserve-max-per-key", def: "1000", kind: integer{1, 1_000_000, ""}, mutable: true, doc: "Maximum number of live reservations of a key. A call with RESERVE beyond it is denied."},
		{name: "busy-reply-threshold", alias: "lua-time-limit", def: "5000", kind: integer{0, 1<<31 - 1, "ms"}, mutable: true, doc: "Time in milliseconds after which clients that wait for a script get -BUSY and may kill the script. 0 never does."},
		{name: "tracking-table-max-keys", def: "1000000", kind: integer{0, 1<<63 - 1, ""}, mutable: true, doc: "Maximum number of keys that CLIENT TRACKING remembers. A further key replaces another, which is invalidated. 0 means no bound."},
		{name: "collection-max-elements", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Maximum number of elements of a hash, sorted set, list or set."},
	}
}

// adminOptions returns the options about the port for operators.
func adminOptions() []option {
	return []option{
		{name: "admin-port", def: "0", kind: integer{0, 65535, ""}, doc: "TCP port for operators, over HTTP: /healthz, /readyz, /metrics and a page. 0 listens on no port. See docs/metrics.md."},
		{name: "admin-bind", def: "127.0.0.1 -::1", kind: words{}, doc: "Addresses of admin-port, as in bind. Addresses that other machines can reach need admin-tls or a password."},
		{name: "admin-hosts", def: "", kind: words{}, doc: "Host names that requests to admin-port may have, in addition to addresses, localhost and the name of the machine. * allows all names. Other names are refused, as protection against DNS rebinding."},
		{name: "admin-tls", def: "no", kind: boolean{}, doc: "Encrypt admin-port, with the certificates of tls-port."},
		{name: "admin-anonymous-metrics", def: "yes", kind: boolean{}, doc: "Whether /metrics needs no login. With no it needs a user with the permission for INFO."},
		{name: "admin-actions", def: "no", kind: boolean{}, doc: "Let users run commands from the page of admin-port, within their permissions."},
		{name: "admin-pprof", def: "no", kind: boolean{}, doc: "Serve /debug/pprof/ on admin-port, to users with the permission for DEBUG."},
	}
}

// processOptions returns the options about the process: its directory, its log and its end.
func processOptions() []option {
	return []option{
		{name: "dir", def: ".", kind: text{}, doc: "Working directory, which must exist. Other paths are relative to it."},
		{name: "loglevel", def: "notice", kind: choice{"debug", "verbose", "notice", "warning", "nothing"}, mutable: true, doc: "Lowest level that is logged."},
		{name: "logfile", def: "", kind: text{}, doc: "File to append logs to. Empty is the standard error."},
		{name: "daemonize", def: "no", kind: boolean{}, doc: "Run in the background. The command returns when the server listens. Under systemd use supervised instead."},
		{name: "pidfile", def: "", kind: text{}, doc: "File that contains the process id while the server runs."},
		{name: "supervised", def: "no", kind: supervision{}, doc: "Service manager to notify when the server is ready: systemd uses sd_notify (Type=notify); auto does so if systemd asks for it."},
		{name: "shutdown-timeout", def: "10", kind: integer{1, 3600, "s"}, mutable: true, doc: "Time for clients to get their replies before the server stops."},
	}
}
