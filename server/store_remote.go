package server

import (
	"runtime"
	"time"

	"github.com/cellserver/cellserver/cluster"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote"
)

// RemoteStore is what decides where there is the option store: a [cluster.Store], or a
// double of a test.
type RemoteStore interface {
	env.Remote
	Info() cluster.Info
	// SetFailPolicies puts the option fail-policy in force, by prefix.
	SetFailPolicies(byPrefix map[string]string)
	// Close answers what is under way, and ends all that the store has started.
	Close()
}

// openCluster opens the store that o names. It returns nil with an error: no *cluster.Store
// that is nil must become a store that looks open.
func openCluster(o cluster.Options) (RemoteStore, error) {
	s, err := cluster.Open(o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// remoteStore is the store as sessions know it. Until it has learned the time from its
// nodes, instants are the server's own.
type remoteStore struct {
	RemoteStore
	own func() limit.Instant
}

// Now implements [env.Remote].
func (r *remoteStore) Now() limit.Instant {
	if now := r.RemoteStore.Now(); now > 0 {
		return now
	}
	return r.own()
}

// storeOptions are the options of the store.
func storeOptions(c *config.Config) cluster.Options {
	return cluster.Options{
		URL:          c.Value("store"),
		Prefix:       c.Value("store-prefix"),
		Timeout:      c.Milliseconds("store-timeout"),
		FailPolicies: c.FailPolicies(),
		Servers:      int(c.Number("store-servers")),
		HotKeys:      c.HotKeys(),
		HotLease:     c.Milliseconds("hot-lease"),
		DenialCache:  c.Milliseconds("denial-cache"),
		MaxValue:     int(c.Number("store-max-value")),
		MaxSkew:      c.Milliseconds("store-max-skew"),
		MultiAcross:  c.Value("multi-across-slots"),
	}
}

// openStore opens the store. The keyspace is then that of fail-policy local, which
// nothing but the store reaches.
func (s *Server) openStore(open func(cluster.Options) (RemoteStore, error)) (err error) {
	if open == nil {
		open = openCluster
	}
	o := storeOptions(s.config)
	o.Log, o.Local = s.log, newPrivate(s.keyspace).decide
	s.store, err = open(o)
	return err
}

// remoteOptions has a store decide what is asked.
func (s *Server) remoteOptions(o *env.Options) {
	r := &remoteStore{s.store, s.clock.Now}
	stores := remote.New(r, func(d time.Duration, f func()) (stop func() bool) { return s.clock.AfterFunc(d, f).Stop })
	o.Remote, o.RemoteInfo, o.Now = stores.Remote(), s.storeInfo, r.Now
	o.NewStore = func() env.Store { return withMemory{stores.NewStore(), s.keyspace} }
}

// withMemory is a store that says what memory the process takes for the keys of
// fail-policy local.
type withMemory struct {
	env.Store
	ks *keyspace.Keyspace
}

// Stats implements [env.Store]. It has no databases: nobody sees their keys.
func (s withMemory) Stats() env.StoreStats {
	return env.StoreStats{Memory: memoryStats(s.ks.Stats())}
}

// closeStore closes the store, if there is one. Nobody asks any more.
func (s *Server) closeStore() {
	if s.store != nil {
		s.store.Close()
	}
}

// private is the keyspace of fail-policy local.
type private struct {
	handles chan *keyspace.Handle
}

// newPrivate makes as many handles as there can be goroutines that decide at once.
func newPrivate(ks *keyspace.Keyspace) *private {
	p := &private{handles: make(chan *keyspace.Handle, runtime.GOMAXPROCS(0))}
	for range cap(p.handles) {
		p.handles <- ks.NewHandle()
	}
	return p
}

// decide decides an ask here. Any goroutine may call it.
func (p *private) decide(a *decide.Ask) {
	h := <-p.handles
	defer func() { p.handles <- h }()
	h.Refresh()
	h.Decide(a)
}
