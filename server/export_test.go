package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/transport"
)

// Stats is what the transport counts.
func (s *Server) Stats() transport.Stats { return s.transport.Stats() }

// NotReady is what /readyz says if the transport is another. Only a server without sockets may be asked.
func (s *Server) NotReady(ctx context.Context, over transport.Transport) string {
	s.transport = over
	return s.notReady(ctx)
}

// HoldsLong is whether what runs makes the server unready.
var HoldsLong = holdsLong

// ClientAuth is what the port with TLS asks clients for.
func (s *Server) ClientAuth() tls.ClientAuthType { return s.tls.clients.Load().ClientAuth }

// SnapshotSeconds is how long the last snapshot took and the present one has been written, as
// INFO says it, if it began and the last one took so long, at the stopwatch reading now.
func SnapshotSeconds(began, took, now time.Duration, saving bool) (last, running int64) {
	var n snapshots
	n.began.Store(int64(began))
	n.took.Store(int64(took))
	return n.seconds(saving, now)
}

// FreedHeap decides when what keys gave up of Go's heap is given back.
type FreedHeap struct{ f freedHeap }

// Due is asked with what keys have.
func (f *FreedHeap) Due(keys int64) bool { return f.f.due(keys) }

// QuietHeap decides when what lies idle in Go's heap is given back.
type QuietHeap struct{ q quietHeap }

// Due is one look at it.
func (q *QuietHeap) Due(cycles uint64, idle, held int64) bool { return q.q.due(cycles, idle, held) }

// NewStore is what the server gives its engine, for engines that a test assembles.
func NewStore(ks *keyspace.Keyspace) env.Store { return newStore(ks) }

// NewBoundedLog is what every line of a server passes, by a stopwatch of the caller's.
func NewBoundedLog(to slog.Handler, stopwatch func() time.Duration) slog.Handler {
	return boundedLog{to, newLogBounds(stopwatch)}
}

// TellLeftOut is what the janitor does every second, and with all what the stop does.
func TellLeftOut(h slog.Handler, all bool) { h.(boundedLog).bounds.tell(all) }

// ClientKinds follows as what clients show themselves.
type ClientKinds struct{ k clientKinds }

// Look is what happens once a second.
func (k *ClientKinds) Look(e *session.Engine) { k.k.look(e) }

// LookEvery is how many seconds pass between two looks, FirstLooks how many note nothing.
const LookEvery, FirstLooks = lookEvery, firstLooks
