package server

import (
	"time"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/local"
	"github.com/cellserver/cellserver/remote"
	"github.com/cellserver/cellserver/remote/adapter"
	"github.com/cellserver/cellserver/remote/records"
)

// RemoteStore is the remote store that the option store names. It decides asks with state that is on
// other servers. It is a [remote.Store], or a double in a test.
type RemoteStore interface {
	env.Remote
	records.Engine
	// Info returns the state and the figures of the store.
	Info() remote.Info
	// SetFailPolicies applies the option fail-policy. byPrefix has the policy for each prefix of
	// keys; the prefix "" is all keys.
	SetFailPolicies(byPrefix map[string]string)
	// SetServers applies the option store-servers: n is the number of servers, at least 1.
	SetServers(n int)
	// Close answers the asks under way, and ends every goroutine and connection of the store.
	Close()
}

// openRemoteStore opens the store of o. On an error it returns nil explicitly: the nil *remote.Store
// in the interface would not compare equal to nil.
func openRemoteStore(o remote.Options) (RemoteStore, error) {
	s, err := remote.Open(o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// clockedRemote is the store as sessions use it. Until the nodes of the store have reported their
// time, its Now reads own, the server's own clock.
type clockedRemote struct {
	RemoteStore
	own func() limit.Instant
}

// Now implements [env.Remote]. It returns the store's time or, until the nodes of the store have
// reported it, that of the server's clock.
func (r *clockedRemote) Now() limit.Instant {
	if now := r.RemoteStore.Now(); now > 0 {
		return now
	}
	return r.own()
}

// remoteConfig returns the options of the store that the configuration c describes.
func remoteConfig(c *config.Config) remote.Options {
	return remote.Options{
		URL:          c.Value("store"),
		Prefix:       c.Value("store-prefix"),
		Hidden:       records.KeyPrefix,
		Timeout:      c.Milliseconds("store-timeout"),
		FailPolicies: c.FailPolicies(),
		Servers:      c.StoreServers(0),
		HotKeys:      c.HotKeys(),
		HotLease:     c.Milliseconds("hot-lease"),
		DenialCache:  c.Milliseconds("denial-cache"),
		MaxValue:     int(c.Number("store-max-value")),
		MaxSkew:      c.Milliseconds("store-max-skew"),
		MultiAcross:  c.Value("multi-across-slots"),
	}
}

// openRemote opens the store of the option store by open, or by openRemoteStore if open is nil, and
// sets s.remote. From then on the keyspace has only the keys of fail-policy local, and only the store
// changes them.
func (s *Server) openRemote(open func(remote.Options) (RemoteStore, error)) (err error) {
	if open == nil {
		open = openRemoteStore
	}
	o := remoteConfig(s.config)
	o.Log, o.Local = s.log, local.NewDecider(s.keyspace).Decide
	s.remote, err = open(o)
	return err
}

// useRemote sets options in o for a server with the option store, on which s.remote decides
// asks.
func (s *Server) useRemote(o *env.Options) {
	r := &clockedRemote{s.remote, s.clock.Now}
	stores := adapter.New(r, func(d time.Duration, f func()) (stop func() bool) { return s.clock.AfterFunc(d, f).Stop })
	o.Remote, o.RemoteInfo, o.Now = stores.Remote(), s.remoteInfo, r.Now
	stores.Memory = func() env.MemoryStats { return local.Memory(s.keyspace.Stats()) } // the keyspace of "fail-policy local"
	o.NewStore = stores.NewStore
	s.openSharing(o, o.Process.RunID())
	s.openSharedPolicies(o, r.Now)
}

// closeRemote closes the store, if there is one. No goroutine may submit asks afterwards.
func (s *Server) closeRemote() {
	if s.remote != nil {
		s.remote.Close()
	}
}
