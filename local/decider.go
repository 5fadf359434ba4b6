package local

import (
	"runtime"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/keyspace"
)

// Decider decides asks for fail-policy local, by a keyspace in this process. Any goroutine may call
// its methods.
type Decider struct {
	handles chan *keyspace.Handle
}

// NewDecider creates a Decider with GOMAXPROCS handles of ks, since no more goroutines can run at
// once.
func NewDecider(ks *keyspace.Keyspace) *Decider {
	d := &Decider{handles: make(chan *keyspace.Handle, runtime.GOMAXPROCS(0))}
	for range cap(d.handles) {
		d.handles <- ks.NewHandle()
	}
	return d
}

// Decide decides the ask a at the present instant of the keyspace, and stores the decision in a. It
// waits for a handle while other goroutines use all of them.
func (d *Decider) Decide(a *decide.Ask) {
	h := <-d.handles
	defer func() { d.handles <- h }()
	h.Refresh()
	h.Decide(a)
}
