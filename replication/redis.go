package replication

import "github.com/cellserver/cellserver/limit"

// redisAnswers takes it that the primary is a Redis or Valkey, from which everything comes
// (full), or what has changed. What it does is run here, so the stream of this node is its own.
func (n *Node) redisAnswers(full bool, address string) {
	n.f.drop()
	n.f.related, n.f.address = false, address
	n.f.horizon.Store(0)
	n.o.Clock.StopFollowing() // it tells no time
	n.o.Keyspace.SweepTo(limit.MaxInstant)
	if !full {
		n.f.from, n.f.received = address, true
		n.beginRedis()
	}
}

// beginRedis begins the stream, unless there is one.
func (n *Node) beginRedis() {
	if n.tap.Load() == nil {
		n.o.Keyspace.Exclusively(func() {
			n.o.Source.Begin(newHistory(), n.o.Source.Offset())
			n.setTap()
		})
	}
	n.f.streaming.Store(true)
}

// endRedis ends it, since the state of a server of this kind comes, and its stream.
func (n *Node) endRedis() {
	if n.o.Redis != nil {
		n.o.Redis.Forget()
	}
	n.untap()
}

// RedisEmpty is told by Options.Redis that a whole state comes that has no key. related says
// that it is of the history that was followed. The error is why the present one is kept.
func (n *Node) RedisEmpty(related bool) error {
	if n.f.keepsFrom(related) {
		return errEmptyPrimary
	}
	return nil
}

// RedisBegins is told by Options.Redis that a whole state comes: the keyspace is empty
// when it returns, and nobody sees it until [Node.RedisWhole].
func (n *Node) RedisBegins() error {
	n.untap()
	if n.f.from != n.f.address {
		// A Redis has no id of its data set. A later copy of it is the same, and may have one here.
		n.f.takeDataSet("")
	}
	n.f.clear(n.f.whole.Swap(false), func() limit.Instant { return n.f.resumed() })
	n.o.Clock.StopFollowing()
	n.o.Keyspace.SweepTo(limit.MaxInstant)
	return nil
}

// RedisWhole is told that it has come. From its return on effects are accepted.
func (n *Node) RedisWhole() error {
	n.f.from, n.f.received = n.f.address, true
	n.f.whole.Store(true)
	n.f.rewrite.begin(n.o.Files, n.o.Log)
	n.beginRedis()
	n.o.Host.SetLoading(false)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.up()
	return nil
}
