package replication

import "github.com/cellserver/cellserver/limit"

// redisAnswers prepares the node for a primary at address that is a Redis or Valkey. full says
// that the Redis is about to send a complete state; otherwise it sends the changes since the
// present state. This node executes the commands that arrive, so it has its own stream.
func (n *Node) redisAnswers(full bool, address string) {
	n.f.drop()
	n.f.related, n.f.address = false, address
	n.f.horizon.Store(0)
	n.o.Clock.StopFollowing() // a Redis does not send the time of its clock
	n.o.Keyspace.SweepTo(limit.MaxInstant)
	if !full {
		n.f.from, n.f.received = address, true
		n.beginRedis()
	}
}

// beginRedis begins the stream of this node, which follows a Redis, unless the stream has already
// begun.
func (n *Node) beginRedis() {
	if n.tap.Load() == nil {
		n.o.Keyspace.Exclusively(func() {
			n.o.Source.Begin(newHistory(), n.o.Source.Offset())
			n.setTap()
		})
	}
	n.f.streaming.Store(true)
}

// endRedis ends the stream of this node, because its primary is a cellserver, which sends its own
// stream.
func (n *Node) endRedis() {
	if n.o.Redis != nil {
		n.o.Redis.Forget()
	}
	n.untap()
}

// RedisEmpty is called by Options.Redis when the Redis is about to send a complete state without
// a key. related says that the history of that state is the one that was followed. The error is
// the reason why the present state must be kept; nil if it may be replaced.
func (n *Node) RedisEmpty(related bool) error {
	if n.f.keepsFrom(related) {
		return errEmptyPrimary
	}
	return nil
}

// RedisBegins is called by Options.Redis when a complete state is about to arrive. When it
// returns, the keyspace is empty, and clients are refused until [Node.RedisWhole]. The error is
// always nil.
func (n *Node) RedisBegins() error {
	n.untap()
	if n.f.from != n.f.address {
		// A Redis has no ID for its data set. A later copy from the same Redis counts as the same
		// data set, and keeps the ID that this server has chosen.
		n.f.takeDataSet("")
	}
	n.f.clear(n.f.whole.Swap(false), func() limit.Instant { return n.f.resumed() })
	n.o.Clock.StopFollowing()
	n.o.Keyspace.SweepTo(limit.MaxInstant)
	return nil
}

// RedisWhole is called by Options.Redis when the complete state has arrived. When it returns,
// effects and clients are accepted. The error is always nil.
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
