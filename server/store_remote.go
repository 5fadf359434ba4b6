package server

import (
	"time"

	"github.com/cellserver/cellserver/cluster"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/local"
	"github.com/cellserver/cellserver/remote"
)

// RemoteStore is the store that the option store names. It decides asks on other servers. It is a
// [cluster.Store], or a double in a test.
type RemoteStore interface {
	env.Remote
	// Info returns the state and the figures of the store.
	Info() cluster.Info
	// SetFailPolicies applies the option fail-policy. byPrefix has the policy for each prefix of
	// keys; the prefix "" is all keys.
	SetFailPolicies(byPrefix map[string]string)
	// Close answers the asks under way, and ends every goroutine and connection of the store.
	Close()
}

// openCluster opens the store of o. On an error it returns nil explicitly: the nil *cluster.Store
// in the interface would not compare equal to nil.
func openCluster(o cluster.Options) (RemoteStore, error) {
	s, err := cluster.Open(o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// remoteStore is the store as sessions use it. own returns the instant of the server's own clock.
type remoteStore struct {
	RemoteStore
	own func() limit.Instant
}

// Now implements [env.Remote]. It returns the store's time or, until the nodes of the store have
// reported it, that of the server's clock.
func (r *remoteStore) Now() limit.Instant {
	if now := r.RemoteStore.Now(); now > 0 {
		return now
	}
	return r.own()
}

// storeOptions returns the options of the store that the configuration c describes.
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

// openStore opens the store of the option store by open, or by openCluster if open is nil, and sets
// s.store. From then on the keyspace has only the keys of fail-policy local, and only the store
// changes them.
func (s *Server) openStore(open func(cluster.Options) (RemoteStore, error)) (err error) {
	if open == nil {
		open = openCluster
	}
	o := storeOptions(s.config)
	o.Log, o.Local = s.log, local.NewDecider(s.keyspace).Decide
	s.store, err = open(o)
	return err
}

// remoteOptions sets options in o for a server with the option store, on which s.store decides
// asks.
func (s *Server) remoteOptions(o *env.Options) {
	r := &remoteStore{s.store, s.clock.Now}
	stores := remote.New(r, func(d time.Duration, f func()) (stop func() bool) { return s.clock.AfterFunc(d, f).Stop })
	o.Remote, o.RemoteInfo, o.Now = stores.Remote(), s.storeInfo, r.Now
	stores.Memory = func() env.MemoryStats { return local.Memory(s.keyspace.Stats()) } // that of fail-policy local
	o.NewStore = stores.NewStore
}

// closeStore closes the store, if there is one. No goroutine may submit asks afterwards.
func (s *Server) closeStore() {
	if s.store != nil {
		s.store.Close()
	}
}
