package local

import (
	"runtime"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/keyspace"
)

// Decider decides asks for fail-policy local, with a keyspace in this process. Any goroutine may call
// its methods.
type Decider struct {
	handles chan *keyspace.Handle
}

// NewDecider creates a Decider with as many handles of ks as goroutines can decide at once.
func NewDecider(ks *keyspace.Keyspace) *Decider {
	d := &Decider{handles: make(chan *keyspace.Handle, runtime.GOMAXPROCS(0))}
	for range cap(d.handles) {
		d.handles <- ks.NewHandle()
	}
	return d
}

// Decide decides the ask a in this process. It may wait for another goroutine's decision.
func (d *Decider) Decide(a *decide.Ask) {
	h := <-d.handles
	defer func() { d.handles <- h }()
	h.Refresh()
	h.Decide(a)
}
