package replication

// setTap makes the log pass its writes to the source. The caller runs setTap inside
// Keyspace.Exclusively.
func (n *Node) setTap() {
	t := newTap(n.log, n.o.Source, n.gap)
	t.begin(n.log.SetTap(t))
	n.tap.Store(t)
}

// gap begins a new history at the present offset, because the log has dropped something. Replicas
// then need a full resynchronization.
func (n *Node) gap() { n.o.Source.Begin(newHistory(), n.o.Source.Offset()) }

// untap ends the stream of a node that has followed a Redis: the log no longer passes its writes
// on.
func (n *Node) untap() {
	if n.tap.Load() != nil {
		n.o.Keyspace.Exclusively(func() {
			n.log.SetTap(nil)
			n.tap.Store(nil)
		})
	}
}
