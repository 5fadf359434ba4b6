package replication

// setTap has the log pass on what it writes. The world is stopped.
func (n *Node) setTap() {
	t := newTap(n.log, n.o.Source, n.gap)
	t.begin(n.log.SetTap(t))
	n.tap.Store(t)
}

// gap begins a new history, since the log has dropped something: replicas have to be given
// the state anew.
func (n *Node) gap() { n.o.Source.Begin(newHistory(), n.o.Source.Offset()) }

// untap has the log of a node that has followed a Redis pass on nothing more.
func (n *Node) untap() {
	if n.tap.Load() != nil {
		n.o.Keyspace.Exclusively(func() {
			n.log.SetTap(nil)
			n.tap.Store(nil)
		})
	}
}
