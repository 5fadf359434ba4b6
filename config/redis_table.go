package config

// redisOption is an option of Redis that has no effect here. A configuration may contain it, CONFIG
// GET always shows the same value, and CONFIG SET changes nothing.
type redisOption struct {
	name string
	// alias is an older name of the option; "" if there is none.
	alias string
	// value is the value that CONFIG GET shows.
	value string
	// immutable says that CONFIG SET of Redis cannot change the option, or that Redis protects it.
	immutable bool
	// hidden says that CONFIG GET of Redis does not show the option.
	hidden bool
}

// shown returns the pairs that CONFIG GET shows for o: the names that match accepts, each with the
// value.
func (o redisOption) shown(match func(name string) bool) (pairs [][2]string) {
	for _, name := range []string{o.name, o.alias} {
		if name != "" && !o.hidden && match(name) {
			pairs = append(pairs, [2]string{name, o.value})
		}
	}
	return pairs
}

// redisGroup is a group of options of Redis that have no effect for the same reason, why.
type redisGroup struct {
	why     string
	options []redisOption
}

// redisOptions returns every option of Redis 7.2 that this server does not have, grouped by the
// reason why it has no effect. The value of an option is the default of Redis, or the value that is
// true for this server if the default would be wrong.
func redisOptions() []redisGroup {
	return []redisGroup{
		{why: "The state is copied to a replica in one way, without a disk, and a replica decides nothing by itself.", options: []redisOption{
			{name: "propagation-error-behavior", value: "ignore"},
			{name: "rdb-del-sync-files", value: "no"},
			{name: "repl-disable-tcp-nodelay", value: "no"},
			{name: "repl-diskless-load", value: "disabled"},
			{name: "repl-diskless-sync", value: "yes"},
			{name: "repl-diskless-sync-delay", value: "5"},
			{name: "repl-diskless-sync-max-replicas", value: "0"},
			{name: "replica-ignore-disk-write-errors", value: "no"},
			{name: "replica-ignore-maxmemory", alias: "slave-ignore-maxmemory", value: "yes"},
			{name: "replica-lazy-flush", alias: "slave-lazy-flush", value: "no"},
			{name: "replica-read-only", alias: "slave-read-only", value: "yes"},
		}},
		{why: "There is no cluster.", options: []redisOption{
			{name: "cluster-allow-pubsubshard-when-down", value: "yes"},
			{name: "cluster-allow-reads-when-down", value: "no"},
			{name: "cluster-allow-replica-migration", value: "yes"},
			{name: "cluster-announce-bus-port", value: "0"},
			{name: "cluster-announce-hostname"},
			{name: "cluster-announce-human-nodename"},
			{name: "cluster-announce-ip"},
			{name: "cluster-announce-port", value: "0"},
			{name: "cluster-announce-tls-port", value: "0"},
			{name: "cluster-config-file", value: "nodes.conf", immutable: true},
			{name: "cluster-enabled", value: "no", immutable: true},
			{name: "cluster-link-sendbuf-limit", value: "0"},
			{name: "cluster-migration-barrier", value: "1"},
			{name: "cluster-node-timeout", value: "15000"},
			{name: "cluster-ping-interval", hidden: true},
			{name: "cluster-port", value: "0", immutable: true},
			{name: "cluster-preferred-endpoint-type", value: "ip"},
			{name: "cluster-replica-no-failover", alias: "cluster-slave-no-failover", value: "no"},
			{name: "cluster-replica-validity-factor", alias: "cluster-slave-validity-factor", value: "10"},
			{name: "cluster-require-full-coverage", value: "yes"},
		}},
		{why: "The server is no client of others, and the TLS of Go chooses these itself. It keeps no sessions: clients keep tickets.", options: []redisOption{
			{name: "tls-client-cert-file"},
			{name: "tls-client-key-file"},
			{name: "tls-client-key-file-pass"},
			{name: "tls-cluster", value: "no"},
			{name: "tls-dh-params-file"},
			{name: "tls-prefer-server-ciphers", value: "no"},
			{name: "tls-session-cache-size", value: "20480"},
			{name: "tls-session-cache-timeout", value: "300"},
		}},
		{why: "Snapshots and the log have another format, with checksums. When a snapshot fails, writes continue.", options: []redisOption{
			{name: "aof-disable-auto-gc", value: "no", hidden: true},
			{name: "aof-load-truncated", value: "yes"},
			{name: "aof-rewrite-incremental-fsync", value: "yes"},
			{name: "aof-timestamp-enabled", value: "no"},
			{name: "aof-use-rdb-preamble", value: "yes"},
			{name: "appendfilename", value: "appendonly.aof", immutable: true},
			{name: "dbfilename", value: "dump.rdb", immutable: true},
			{name: "key-load-delay", hidden: true},
			{name: "loading-process-events-interval-bytes", hidden: true},
			{name: "lua-replicate-commands", hidden: true},
			{name: "no-appendfsync-on-rewrite", value: "no"},
			{name: "rdb-key-save-delay", hidden: true},
			{name: "rdb-save-incremental-fsync", value: "yes"},
			{name: "rdbchecksum", value: "yes", immutable: true},
			{name: "rdbcompression", value: "yes"},
			{name: "sanitize-dump-payload", value: "no"},
			{name: "stop-writes-on-bgsave-error", value: "no"},
		}},
		{why: "There is one layout of memory, and no key is evicted.", options: []redisOption{
			{name: "active-defrag-cycle-max", value: "25"},
			{name: "active-defrag-cycle-min", value: "1"},
			{name: "active-defrag-ignore-bytes", value: "104857600"},
			{name: "active-defrag-max-scan-fields", value: "1000"},
			{name: "active-defrag-threshold-lower", value: "10"},
			{name: "active-defrag-threshold-upper", value: "100"},
			{name: "active-expire-effort", value: "1"},
			{name: "activedefrag", value: "no"},
			{name: "activerehashing", value: "yes"},
			{name: "hash-max-listpack-entries", alias: "hash-max-ziplist-entries", value: "512"},
			{name: "hash-max-listpack-value", alias: "hash-max-ziplist-value", value: "64"},
			{name: "hll-sparse-max-bytes", value: "3000"},
			{name: "jemalloc-bg-thread", value: "no"},
			{name: "lazyfree-lazy-eviction", value: "no"},
			{name: "lazyfree-lazy-expire", value: "no"},
			{name: "lazyfree-lazy-server-del", value: "no"},
			{name: "lazyfree-lazy-user-del", value: "no"},
			{name: "lazyfree-lazy-user-flush", value: "no"},
			{name: "lfu-decay-time", value: "1"},
			{name: "lfu-log-factor", value: "10"},
			{name: "list-compress-depth", value: "0"},
			{name: "list-max-listpack-size", alias: "list-max-ziplist-size", value: "-2"},
			{name: "list-max-ziplist-entries", hidden: true},
			{name: "list-max-ziplist-value", hidden: true},
			{name: "maxmemory-eviction-tenacity", value: "10"},
			{name: "maxmemory-samples", value: "5"},
			{name: "set-max-intset-entries", value: "512"},
			{name: "set-max-listpack-entries", value: "128"},
			{name: "set-max-listpack-value", value: "64"},
			{name: "stream-node-max-bytes", value: "4096"},
			{name: "stream-node-max-entries", value: "100"},
			{name: "zset-max-listpack-entries", alias: "zset-max-ziplist-entries", value: "128"},
			{name: "zset-max-listpack-value", alias: "zset-max-ziplist-value", value: "64"},
		}},
		{why: "There is no keyspace notification.", options: []redisOption{
			{name: "notify-keyspace-events"},
		}},
		{why: "They concern the process of Redis.", options: []redisOption{
			{name: "always-show-logo", value: "no", immutable: true},
			{name: "aof_rewrite_cpulist", immutable: true},
			{name: "bgsave_cpulist", immutable: true},
			{name: "bind-source-addr"},
			{name: "bio_cpulist", immutable: true},
			{name: "client-default-resp", immutable: true, hidden: true},
			{name: "crash-log-enabled", value: "yes"},
			{name: "crash-memcheck-enabled", value: "yes"},
			{name: "disable-thp", value: "yes", immutable: true},
			{name: "dynamic-hz", value: "yes"},
			{name: "enable-module-command", value: "no", immutable: true},
			{name: "enable-protected-configs", value: "no", immutable: true},
			{name: "hz", value: "10"},
			{name: "ignore-warnings"},
			{name: "io-threads-do-reads", value: "no", immutable: true},
			{name: "locale-collate"},
			{name: "oom-score-adj", value: "no"},
			{name: "oom-score-adj-values", value: "0 200 800"},
			{name: "proc-title-template", value: "{title} {listen-addr} {server-mode}"},
			{name: "req-res-logfile", immutable: true, hidden: true},
			{name: "server_cpulist", immutable: true},
			{name: "set-proc-title", value: "yes", immutable: true},
			{name: "shutdown-on-sigint", value: "default"},
			{name: "shutdown-on-sigterm", value: "default"},
			{name: "socket-mark-id", value: "0", immutable: true},
			{name: "syslog-enabled", value: "no", immutable: true},
			{name: "syslog-facility", value: "local0", immutable: true},
			{name: "syslog-ident", value: "redis", immutable: true},
			{name: "use-exit-on-panic", hidden: true},
			{name: "watchdog-period", hidden: true},
		}},
	}
}
