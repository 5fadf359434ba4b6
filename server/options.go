package server

// option is one setting. Flags, environment, file, CONFIG GET and SET, --help and the sample
// file all use this one definition.
type option struct {
	name string
	// alias is an older name of the same option, or "".
	alias string
	// def is the default, as it is written in a file.
	def string
	// kind checks and normalises a value.
	kind kind
	// mutable options can be changed by CONFIG SET.
	mutable bool
	// secret values are shown by CONFIG GET but never logged.
	secret bool
	// show is what CONFIG GET shows of a value with a password in it; nil shows all.
	show func(value string) string
	doc  string
}

// options lists every setting, in the order of the sample file. An option with the meaning
// of one of Redis has its name.
func options() []option {
	return []option{
		{name: "bind", def: "127.0.0.1 -::1", kind: words{}, doc: "Addresses to listen on. * is all of IPv4, and ::* all of IPv6. Empty listens on none. An address that begins with '-' may be missing on this machine."},
		{name: "port", def: "6379", kind: integer{0, 65535, ""}, doc: "TCP port. 0 listens on no port."},
		{name: "tcp-backlog", def: "511", kind: integer{1, 65535, ""}, doc: "Connections that the kernel holds until the server accepts them."},
		{name: "transport", def: "auto", kind: choice{"auto", "epoll", "goroutine"}, doc: "How connections are served: by an event loop per core (Linux), or by a goroutine each."},
		{name: "io-threads", def: "0", kind: integer{0, 128, ""}, doc: "Number of event loops. 0 means one per core, at most 8."},
		{name: "unixsocket", def: "", kind: text{}, doc: "Path of a Unix socket to listen on."},
		{name: "unixsocketperm", def: "700", kind: octal{}, doc: "Permissions of the Unix socket, in octal."},
		{name: "protected-mode", def: "yes", kind: boolean{}, mutable: true, doc: "Serve only this machine while there is no password and no chosen bind."},
		{name: "requirepass", def: "", kind: text{}, mutable: true, secret: true, doc: "Password of the user default. Empty lets everybody in."},
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
		{name: "maxmemory", def: "0", kind: size{0, 1 << 50}, mutable: true, doc: "Memory for keys and clients above which new keys are refused. 0 means no bound."},
		{name: "maxmemory-clients", def: "10%", kind: sizeOrShare{size{0, 1 << 50}}, mutable: true, doc: "Memory for all clients together: bytes, or a share of maxmemory. Above it, the clients that hold most are refused the command that they are sending, or closed. 0 means no bound."},
		{name: "maxmemory-policy", def: "noeviction", kind: evictionPolicy{}, mutable: true, doc: "What happens when memory is full: existing limiters go on, and new keys are refused."},
		{name: "sw-log-max-entries", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Largest limit of SW.ALLOW LOG, which keeps an entry for each distinct instant."},
		{name: "cc-max-members", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Maximum number of leases of one CC.ACQUIRE key."},
		{name: "busy-reply-threshold", alias: "lua-time-limit", def: "5000", kind: integer{0, 1<<31 - 1, "ms"}, mutable: true, doc: "Time in milliseconds after which clients that wait for a script get -BUSY and may kill it. 0 lets them wait."},
		{name: "tracking-table-max-keys", def: "1000000", kind: integer{0, 1<<63 - 1, ""}, mutable: true, doc: "Maximum number of keys that CLIENT TRACKING remembers. A further key replaces another, which is invalidated. 0 means no bound."},
		{name: "collection-max-elements", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Maximum number of elements of a hash, sorted set, list or set."},
		{name: "save", def: "", kind: savePoints{}, doc: "Write a snapshot after this many seconds with this many changes: pairs of numbers. Empty never does."},
		{name: "appendonly", def: "no", kind: boolean{}, doc: "Keep a log, so that a restart loses nothing."},
		{name: "appendfsync", def: "everysec", kind: choice{"always", "everysec", "no"}, mutable: true, doc: "When the log is forced to disk: before every reply, every second, or when the system likes, but at least once a minute."},
		{name: "appenddirname", def: "appendonlydir", kind: dirName{}, doc: "Directory inside dir for snapshots and the log."},
		{name: "auto-aof-rewrite-percentage", def: "100", kind: integer{0, 1 << 31, ""}, mutable: true, doc: "Replace the log by a snapshot when it is this many percent larger than the last snapshot. 0 never does."},
		{name: "auto-aof-rewrite-min-size", def: "64mb", kind: size{0, 1 << 50}, mutable: true, doc: "Size below which a log is not replaced."},
		{name: "clock-max-forward-jump", def: "0", kind: integer{0, 1 << 31, "s"}, doc: "Maximum by which time may advance over a reboot of the machine, whatever the wall clock says. 0 means no bound."},
		{name: "store", def: "", kind: storeURL{}, secret: true, show: maskURL, doc: "Keep limits in the Valkey or Redis at this URL, and not in this server: valkey://user:password@host:port,host:port/ or redis://, and valkeys:// or rediss:// with TLS. See docs/scale-out.md. Empty keeps them here."},
		{name: "store-prefix", def: "cs:", kind: storePrefix{}, doc: "What the keys in the store begin with. It has no braces, so that {tags} of keys choose their slot."},
		{name: "store-timeout", def: "50", kind: integer{1, 60_000, "ms"}, doc: "Time in milliseconds within which the store answers, or fail-policy does."},
		{name: "fail-policy", def: "closed", kind: failPolicies, doc: "What answers while the store does not: closed is an error -UNAVAILABLE, open admits, local decides here with the limit divided by store-servers. A prefix in front makes it that of the keys that begin so: the longest that fits counts."},
		{name: "store-servers", def: "1", kind: integer{1, 1 << 20, ""}, doc: "Number of servers that share the store, by which fail-policy local divides limits."},
		{name: "hot-keys", def: "exact", kind: hotKeys, doc: "How a key with very many calls is decided: exact asks the store each time, lease takes a part of the limit in advance and decides calls in memory until that is spent. A prefix in front makes it that of the keys that begin so."},
		{name: "hot-lease", def: "100", kind: integer{1, 10_000, "ms"}, doc: "Longest time in milliseconds for which a lease is taken. It is at most a quarter of what a limit tolerates."},
		{name: "denial-cache", def: "100", kind: integer{0, 60_000, "ms"}, doc: "Longest time in milliseconds for which a denial is repeated without the store. 0 asks each time."},
		{name: "store-max-value", def: "64kb", kind: size{1 << 10, 16 << 20}, doc: "Longest value in the store, which bounds SW.ALLOW LOG and the leases of CC.ACQUIRE."},
		{name: "store-max-skew", def: "250", kind: integer{1, 3_600_000, "ms"}, doc: "Jump of the store's clock in milliseconds from which it is logged."},
		{name: "multi-across-slots", def: "charge", kind: choice{"charge", "refuse"}, doc: "RL.MULTI with keys in several slots of a cluster: charge one after the other and give back what is refused, or refuse with -CROSSSLOT."},
		{name: "dir", def: ".", kind: text{}, doc: "Working directory, which must exist. Other paths are relative to it."},
		{name: "loglevel", def: "notice", kind: choice{"debug", "verbose", "notice", "warning", "nothing"}, mutable: true, doc: "Lowest severity that is logged."},
		{name: "logfile", def: "", kind: text{}, doc: "File to append logs to. Empty is the standard error."},
		{name: "daemonize", def: "no", kind: boolean{}, doc: "Run in the background. The command returns when the server listens. Under systemd use supervised instead."},
		{name: "pidfile", def: "", kind: text{}, doc: "File that contains the process id while the server runs."},
		{name: "supervised", def: "no", kind: supervision{}, doc: "Whom to notify when the server is ready: systemd uses sd_notify (Type=notify); auto does so if systemd asks for it."},
		{name: "shutdown-timeout", def: "10", kind: integer{1, 3600, "s"}, mutable: true, doc: "Time for clients to get their replies before the server stops."},
	}
}
