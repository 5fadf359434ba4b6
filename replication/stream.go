package replication

// setTap makes the log pass its writes to the source. The caller runs it inside Keyspace.Exclusively.
func (n *Node) setTap() {
	t := newTap(n.log, n.o.Source, n.gap)
	t.begin(n.log.SetTap(t))
	n.tap.Store(t)
}

// gap begins a new history, because the log has dropped something. Replicas then need a full
// resynchronization.
func (n *Node) gap() { n.o.Source.Begin(newHistory(), n.o.Source.Offset()) }

// untap stops the log of a node that has followed a Redis from passing anything on.
func (n *Node) untap() {
	if n.tap.Load() != nil {
		n.o.Keyspace.Exclusively(func() {
			n.log.SetTap(nil)
			n.tap.Store(nil)
		})
	}
}
