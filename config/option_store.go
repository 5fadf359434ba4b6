package config

// storeOptions are the store elsewhere, if there is one.
func storeOptions() []option {
	return []option{
		{name: "store", def: "", kind: storeURL{}, secret: true, show: MaskURL, doc: "Keep limits in the Valkey or Redis at this URL, and not in this server: valkey://user:password@host:port,host:port/ or redis://, and valkeys:// or rediss:// with TLS. See docs/scale-out.md. Empty keeps them here."},
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
	}
}
