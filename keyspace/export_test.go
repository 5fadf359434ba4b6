package keyspace

// Storages are the names of all kinds of storage there are.
func Storages() (names []string) {
	for name := range storages {
		names = append(names, name)
	}
	return names
}

// With returns o with that kind of storage.
func (o Options) With(storage string) Options {
	o.newTable = storages[storage]
	return o
}

// Seen is how many keys the view remembers to have seen expired.
func (v *View) Seen() int { return len(v.observed.seen) }

// ShardOf is which shard key lies in.
func (ks *Keyspace) ShardOf(key []byte) int { return int(ks.hash(key) >> ks.shift) }
