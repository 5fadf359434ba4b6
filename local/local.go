// Package local implements [env.Local] for a server whose keys are in its own keyspace.
//
// It adapts a [keyspace.Handle] to the types of package env, so that neither of the two packages
// imports the other. A [Decider] decides asks by a keyspace for a server whose keys are in another
// store, while that store does not answer.
package local

import (
	"time"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/waiting"
	"github.com/cellserver/cellserver/limit"
)

// store adapts a handle of the keyspace to [env.Local]. It embeds the handle, whose methods with
// the same signature it uses. Its own methods convert arguments and results of the other methods.
type store struct {
	*keyspace.Handle
	ks   *keyspace.Keyspace
	refs []keyspace.Ref // a buffer that Lock and AppendMoves reuse
}

var _ env.Local = (*store)(nil)

// NewStore returns a store that uses ks by a new handle. Only one goroutine at a time may use the
// store.
func NewStore(ks *keyspace.Keyspace) env.Local { return &store{Handle: ks.NewHandle(), ks: ks} }

// Observe implements [env.Local].
func (s *store) Observe(o env.Observer) { s.Handle.Observe(o) }

// NotifyStart implements [env.Local].
func (s *store) NotifyStart(wake func()) { s.ks.World().NotifyStart(wake) }

// StartWorld implements [env.Local].
func (s *store) StartWorld() { s.ks.World().Start() }

// WakeWaiting implements [env.Local].
func (s *store) WakeWaiting() { s.ks.World().WakeWaiting() }

// Lock implements [env.Local].
func (s *store) Lock(refs []env.KeyRef, watched any) {
	s.refs = s.refs[:0]
	for _, r := range refs {
		s.refs = append(s.refs, keyspace.Ref(r))
	}
	if watched != nil {
		s.refs = watched.(*keyspace.Watcher).WatchedRefs(s.refs)
	}
	s.Handle.Lock(s.refs)
}

// Watch implements [env.Local].
func (s *store) Watch(token any, db int, key []byte) any {
	if token == nil {
		token = &keyspace.Watcher{}
	}
	s.Handle.Watch(token.(*keyspace.Watcher), db, key)
	return token
}

// Changed implements [env.Local].
func (s *store) Changed(token any) bool { return s.Dirty(token.(*keyspace.Watcher)) }

// Unwatch implements [env.Local].
func (s *store) Unwatch(token any) { s.Handle.Unwatch(token.(*keyspace.Watcher)) }

// Enqueue implements [env.Local].
func (s *store) Enqueue(keys []env.KeyRef, rank int64, wake func()) (tickets []any, first bool) {
	tickets, first = make([]any, len(keys)), true
	for i, k := range keys {
		w := &waiting.Waiter{Wake: wake, Rank: rank}
		tickets[i], first = w, s.Handle.Enqueue(k.DB, k.Key, w) && first
	}
	return tickets, first
}

// First implements [env.Local].
func (s *store) First(ticket any) bool { return s.Handle.First(ticket.(*waiting.Waiter)) }

// Dequeue implements [env.Local].
func (s *store) Dequeue(ticket any) { s.Handle.Dequeue(ticket.(*waiting.Waiter)) }

// EnqueuePop implements [env.Local].
func (s *store) EnqueuePop(db int, keys [][]byte, w env.PopWait) (ticket any) {
	p := &waiting.PopWaiter{Kind: entry.List, Dest: w.Dest, Owner: w.Owner, Ready: w.Ready}
	if w.SortedSet {
		p.Kind = entry.SortedSet
	}
	s.Handle.EnqueuePop(db, keys, p)
	return p
}

// DequeuePop implements [env.Local].
func (s *store) DequeuePop(ticket any) { s.Handle.DequeuePop(ticket.(*waiting.PopWaiter)) }

// AppendMoves implements [env.Local].
func (s *store) AppendMoves(refs []env.KeyRef) []env.KeyRef {
	s.refs = s.refs[:0]
	for _, r := range refs {
		s.refs = append(s.refs, keyspace.Ref(r))
	}
	s.refs = s.Handle.AppendMoves(s.refs)
	for _, r := range s.refs[len(refs):] {
		refs = append(refs, env.KeyRef(r))
	}
	return refs
}

// Serve implements [env.Local]. env.Served and keyspace.Served have the same numbers for the same
// results.
func (s *store) Serve(f func(owner any, db int, key []byte) env.Served) {
	s.Handle.Serve(func(w *waiting.PopWaiter, db int, key []byte) keyspace.Served {
		return keyspace.Served(f(w.Owner, db, key))
	})
}

// Civil implements [env.Local].
func (s *store) Civil(i limit.Instant) limit.Instant { return s.ks.Clock().Civil(i) }

// FromCivil implements [env.Local].
func (s *store) FromCivil(i limit.Instant) limit.Instant { return s.ks.Clock().Derived(i) }

// AfterFunc implements [env.Local].
func (s *store) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return s.ks.Clock().AfterFunc(d, f).Stop
}

// TypeName implements [env.Local].
func (s *store) TypeName(db int, key []byte) string { return s.Kind(db, key).Type() }

// Stats implements [env.Local].
func (s *store) Stats() env.StoreStats { return Stats(s.Handle.Stats()) }

// Stats converts the statistics of a keyspace for commands and figures.
func Stats(st keyspace.Stats) env.StoreStats {
	out := env.StoreStats{
		Databases: make([]env.DatabaseStats, len(st.Databases)),
		Memory:    Memory(st),
	}
	for i, d := range st.Databases {
		out.Databases[i] = env.DatabaseStats{Keys: int64(d.Keys), Expires: int64(d.Expires), AvgTTL: d.AvgTTL}
	}
	return out
}

// Memory converts the statistics of a keyspace that are about memory.
func Memory(st keyspace.Stats) env.MemoryStats {
	return env.MemoryStats{Dataset: st.Memory, InHeap: st.InHeap, Max: st.MaxMemory, Expired: st.Expired}
}

// Scan implements [env.Local].
func (s *store) Scan(db int, cursor uint64, count int, f func(key []byte, typeName string)) uint64 {
	return s.Handle.Scan(db, cursor, count, func(key []byte, k entry.Kind) { f(key, k.Type()) })
}
