package config

// memoryOptions are bounds on memory and on what commands may build.
func memoryOptions() []option {
	return []option{
		{name: "maxmemory", def: "0", kind: size{0, 1 << 50}, mutable: true, doc: "Memory for keys and clients above which new keys are refused. 0 means no bound."},
		{name: "maxmemory-clients", def: "10%", kind: sizeOrShare{size{0, 1 << 50}}, mutable: true, doc: "Memory for all clients together: bytes, or a share of maxmemory. Above it, the clients that hold most are refused the command that they are sending, or closed. 0 means no bound."},
		{name: "maxmemory-policy", def: "noeviction", kind: evictionPolicy{}, mutable: true, doc: "What happens when memory is full: existing limiters go on, and new keys are refused."},
		{name: "sw-log-max-entries", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Largest limit of SW.ALLOW LOG, which keeps an entry for each distinct instant."},
		{name: "cc-max-members", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Maximum number of leases of one CC.ACQUIRE key."},
		{name: "busy-reply-threshold", alias: "lua-time-limit", def: "5000", kind: integer{0, 1<<31 - 1, "ms"}, mutable: true, doc: "Time in milliseconds after which clients that wait for a script get -BUSY and may kill it. 0 lets them wait."},
		{name: "tracking-table-max-keys", def: "1000000", kind: integer{0, 1<<63 - 1, ""}, mutable: true, doc: "Maximum number of keys that CLIENT TRACKING remembers. A further key replaces another, which is invalidated. 0 means no bound."},
		{name: "collection-max-elements", def: "100000", kind: integer{1, 1 << 24, ""}, mutable: true, doc: "Maximum number of elements of a hash, sorted set, list or set."},
	}
}
