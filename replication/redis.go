package replication

import "github.com/cellserver/cellserver/limit"

// redisAnswers prepares for a primary that is a Redis or Valkey. It sends a complete state if
// full is set, and otherwise the changes since. This node executes the commands that arrive, so
// it has a stream of its own.
func (n *Node) redisAnswers(full bool, address string) {
	n.f.drop()
	n.f.related, n.f.address = false, address
	n.f.horizon.Store(0)
	n.o.Clock.StopFollowing() // a Redis does not send its clock
	n.o.Keyspace.SweepTo(limit.MaxInstant)
	if !full {
		n.f.from, n.f.received = address, true
		n.beginRedis()
	}
}

// beginRedis begins the stream of this node, unless there is one.
func (n *Node) beginRedis() {
	if n.tap.Load() == nil {
		n.o.Keyspace.Exclusively(func() {
			n.o.Source.Begin(newHistory(), n.o.Source.Offset())
			n.setTap()
		})
	}
	n.f.streaming.Store(true)
}

// endRedis ends that stream, because the primary is a server of this kind and sends its own.
func (n *Node) endRedis() {
	if n.o.Redis != nil {
		n.o.Redis.Forget()
	}
	n.untap()
}

// RedisEmpty is called by Options.Redis when the primary is about to send a complete state
// without a key. related says that it has the history that was followed. The error says why the
// present state is kept.
func (n *Node) RedisEmpty(related bool) error {
	if n.f.keepsFrom(related) {
		return errEmptyPrimary
	}
	return nil
}

// RedisBegins is called by Options.Redis when a complete state is about to arrive. The keyspace
// is empty when it returns, and refuses clients until [Node.RedisWhole].
func (n *Node) RedisBegins() error {
	n.untap()
	if n.f.from != n.f.address {
		// A Redis has no ID of its data set. A later copy from the same Redis is the same data
		// set, and keeps the ID that it was given here.
		n.f.takeDataSet("")
	}
	n.f.clear(n.f.whole.Swap(false), func() limit.Instant { return n.f.resumed() })
	n.o.Clock.StopFollowing()
	n.o.Keyspace.SweepTo(limit.MaxInstant)
	return nil
}

// RedisWhole is called when that state has arrived. When it returns, effects are accepted.
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
