package server

// option is one setting: the single place from which flags, environment, file,
// CONFIG GET and SET, --help and the sample file derive.
type option struct {
	name string
	// alias is an older name of the same option, or "".
	alias string
	// def is the value of a server that is told nothing, as it is written in a file.
	def string
	// kind checks and normalises a value.
	kind kind
	// mutable options can be changed by CONFIG SET.
	mutable bool
	// secret values are shown by CONFIG GET but never logged.
	secret bool
	doc    string
}

// options lists every setting. The names are Redis' own where the thing is the
// same. The order is that of the sample file.
func options() []option {
	return []option{
		{name: "bind", def: "127.0.0.1 -::1", kind: words{}, doc: "Addresses to listen on: * is all of IPv4, ::* of IPv6; empty is none. One that begins with '-' may be missing on this machine."},
		{name: "port", def: "6379", kind: integer{0, 65535, ""}, doc: "TCP port; 0 listens on no port."},
		{name: "tcp-backlog", def: "511", kind: integer{1, 65535, ""}, doc: "Connections the kernel holds before they are accepted."},
		{name: "transport", def: "auto", kind: choice{"auto", "epoll", "goroutine"}, doc: "How connections are served: an event loop per core (Linux) or a goroutine for each."},
		{name: "io-threads", def: "0", kind: integer{0, 128, ""}, doc: "Event loops; 0 is one for each core, at most 8."},
		{name: "unixsocket", def: "", kind: text{}, doc: "Path of a Unix socket to listen on."},
		{name: "unixsocketperm", def: "700", kind: octal{}, doc: "Permissions of the Unix socket, in octal."},
		{name: "protected-mode", def: "yes", kind: boolean{}, mutable: true, doc: "Without a password and a chosen bind, serve only this machine."},
		{name: "requirepass", def: "", kind: text{}, mutable: true, secret: true, doc: "Password of the user default; empty lets everybody in."},
		{name: "databases", def: "16", kind: integer{1, 16, ""}, doc: "Number of databases that SELECT reaches."},
		{name: "maxclients", def: "10000", kind: integer{1, 1 << 20, ""}, mutable: true, doc: "Most clients at once; lowered at start to what file descriptors allow."},
		{name: "max-clients-per-ip", def: "0", kind: integer{0, 1 << 20, ""}, mutable: true, doc: "Most clients of one address at once; 0 is no bound."},
		{name: "timeout", def: "0", kind: integer{0, 1<<31 - 1, "s"}, mutable: true, doc: "Close a client that is idle for so many seconds; 0 never does."},
		{name: "partial-timeout", def: "30", kind: integer{1, 1<<31 - 1, "s"}, mutable: true, doc: "Close a client whose unfinished command is older."},
		{name: "auth-timeout", def: "10", kind: integer{1, 1<<31 - 1, "s"}, mutable: true, doc: "Close a client that has not authenticated by then."},
		{name: "write-timeout", def: "5", kind: integer{1, 3600, "s"}, doc: "Close a client that takes none of its replies for so long; a quarter of it while others wait for the memory of a long one."},
		{name: "tcp-keepalive", def: "300", kind: integer{0, 1<<31 - 1, "s"}, doc: "Period of TCP keep-alive probes; 0 sends none."},
		{name: "proto-max-bulk-len", def: "32mb", kind: size{1 << 10, 512 << 20}, mutable: true, doc: "Longest argument of a command, and so the longest value: beyond it the command is refused. 32mb is 32 times what memcached takes by default; a longer value is better kept elsewhere, since it is copied while its part of the keys is locked."},
		{name: "client-query-buffer-limit", def: "33mb", kind: size{16 << 10, 1 << 30}, mutable: true, doc: "Longest command as a whole: beyond it, or beyond half of maxmemory-clients, it is refused."},
		{name: "client-output-backlog", def: "256kb", kind: size{16 << 10, 64 << 20}, doc: "Unread replies above which no more input of a client is read."},
		{name: "client-output-buffer-limit", def: defaultOutputLimits, kind: outputLimits{}, mutable: true, doc: "For a class of clients, unread bytes at once and for how long: only that of pubsub is in force."},
		{name: "maxmemory", def: "0", kind: size{0, 1 << 50}, mutable: true, doc: "Memory for keys and clients above which new keys are refused; 0 is no bound."},
		{name: "maxmemory-clients", def: "10%", kind: sizeOrShare{size{0, 1 << 50}}, mutable: true, doc: "Memory for all clients together, above which those with most are refused the command that they are sending, or closed: bytes, or a share of maxmemory; 0 is no bound."},
		{name: "maxmemory-policy", def: "noeviction", kind: evictionPolicy{}, mutable: true, doc: "What happens then: existing limiters go on, new ones are refused."},
		{name: "sw-log-max-entries", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Largest limit of SW.ALLOW LOG, which keeps an entry for each distinct instant."},
		{name: "cc-max-members", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Most leases of one CC.ACQUIRE key."},
		{name: "busy-reply-threshold", alias: "lua-time-limit", def: "5000", kind: integer{0, 1<<31 - 1, "ms"}, mutable: true, doc: "Time in milliseconds after which those who wait for a script are told so and may kill it; 0 lets them wait."},
		{name: "tracking-table-max-keys", def: "1000000", kind: integer{0, 1<<63 - 1, ""}, mutable: true, doc: "Most keys that are remembered for CLIENT TRACKING; for another one somebody has to forget one. 0 is no bound."},
		{name: "collection-max-elements", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Most elements of a hash, sorted set, list or set."},
		{name: "save", def: "", kind: savePoints{}, doc: "Write a snapshot after so many seconds with so many changes: pairs of numbers; empty never does."},
		{name: "appendonly", def: "no", kind: boolean{}, doc: "Keep a log of effects, from which a restart loses nothing."},
		{name: "appendfsync", def: "everysec", kind: choice{"always", "everysec", "no"}, mutable: true, doc: "When the log is forced to disk: before every reply, every second, or when the system likes, at the latest after a minute."},
		{name: "appenddirname", def: "appendonlydir", kind: dirName{}, doc: "Directory, inside of dir, for snapshots and the log."},
		{name: "auto-aof-rewrite-percentage", def: "100", kind: integer{0, 1 << 31, ""}, mutable: true, doc: "Replace the log by a snapshot when it has grown beyond the last one by so many percent; 0 never does."},
		{name: "auto-aof-rewrite-min-size", def: "64mb", kind: size{0, 1 << 50}, mutable: true, doc: "Size below which a log is left alone."},
		{name: "clock-max-forward-jump", def: "0", kind: integer{0, 1 << 31, "s"}, doc: "How far time may go on over a reboot of the machine at most, whatever the wall clock says; 0 believes it."},
		{name: "dir", def: ".", kind: text{}, doc: "Working directory, which must exist: other paths are relative to it."},
		{name: "loglevel", def: "notice", kind: choice{"debug", "verbose", "notice", "warning", "nothing"}, mutable: true, doc: "Least severity that is logged."},
		{name: "logfile", def: "", kind: text{}, doc: "File to append logs to; empty is the standard error."},
		{name: "daemonize", def: "no", kind: boolean{}, doc: "Run in the background: the command returns once the server listens. Not under systemd, see supervised."},
		{name: "pidfile", def: "", kind: text{}, doc: "File that holds the process id while the server runs."},
		{name: "supervised", def: "no", kind: supervision{}, doc: "Whom to tell that the server is ready: systemd by sd_notify (Type=notify); auto does where systemd asks for it."},
		{name: "shutdown-timeout", def: "10", kind: integer{1, 3600, "s"}, mutable: true, doc: "Time for clients to be served before the server stops."},
	}
}
