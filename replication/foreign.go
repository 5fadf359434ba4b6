package replication

import "github.com/cellserver/cellserver/limit"

// foreignAnswers takes it that the primary is a Redis or Valkey, from which everything comes
// (full), or what has changed. What it does is run here, so the stream of this node is its own.
func (n *Node) foreignAnswers(full bool, address string) {
	n.f.drop()
	n.f.related, n.f.address = false, address
	n.f.horizon.Store(0)
	n.o.Clock.Lead() // it tells no time
	n.o.Keyspace.SweepTo(limit.MaxInstant)
	if !full {
		n.f.from, n.f.received = address, true
		n.beginForeign()
	}
}

// beginForeign begins the stream, unless there is one.
func (n *Node) beginForeign() {
	if n.tap.Load() == nil {
		n.o.Keyspace.Alone(func() {
			n.o.Source.Begin(newHistory(), n.o.Source.Offset())
			n.setTap()
		})
	}
	n.f.streaming.Store(true)
}

// endForeign ends it, since the state of a server of this kind comes, and its stream.
func (n *Node) endForeign() {
	if n.o.Foreign != nil {
		n.o.Foreign.Forget()
	}
	n.untap()
}

// ForeignEmpty is told by Options.Foreign that a whole state comes that has no key. related says
// that it is of the history that was followed. The error is why the present one is kept.
func (n *Node) ForeignEmpty(related bool) error {
	if n.f.keepsFrom(related) {
		return errEmptyPrimary
	}
	return nil
}

// ForeignBegins is told by Options.Foreign that a whole state comes: the keyspace is empty
// when it returns, and nobody sees it until [Node.ForeignWhole].
func (n *Node) ForeignBegins() error {
	n.untap()
	if n.f.from != n.f.address {
		// A Redis has no id of its data set. A later copy of it is the same, and may have one here.
		n.f.takeDataSet("")
	}
	n.f.clear(n.f.whole.Swap(false), func() limit.Instant { return n.f.resumed() })
	n.o.Clock.Lead()
	n.o.Keyspace.SweepTo(limit.MaxInstant)
	return nil
}

// ForeignWhole is told that it has come. From its return on effects are accepted.
func (n *Node) ForeignWhole() error {
	n.f.from, n.f.received = n.f.address, true
	n.f.whole.Store(true)
	n.f.adoption.begin(n.o.Keeper, n.o.Log)
	n.beginForeign()
	n.o.Host.SetLoading(false)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.up()
	return nil
}
