package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/replication"
)

// openReplication makes the node, a primary until it is told to follow. There is none where the
// keys are elsewhere, or where a test's clock cannot follow another.
func (s *Server) openReplication(o *env.Options) {
	c, ok := s.clock.(replication.Clock)
	if s.config.Remote() || !ok {
		return
	}
	r := &replicator{s: s}
	foreign := newForeign(r)
	settings := s.config.Replication
	r.source = replication.NewSource(replication.SourceOptions{
		Keyspace:    s.keyspace,
		Reached:     func() uint64 { return r.node.Reached() },
		DataSet:     func(claimed string) string { return r.node.DataSet(claimed) },
		BacklogSize: func() int64 { return settings().BacklogSize },
		BacklogTTL:  func() time.Duration { return settings().BacklogTTL },
		PingPeriod:  func() time.Duration { return settings().PingPeriod },
		Stopwatch:   s.stopwatch,
		After:       func(d time.Duration, f func()) clock.Timer { return time.AfterFunc(d, f) },
		Freed:       func() { r.node.Freed() },
		Log:         s.log,
	})
	r.node = replication.New(replication.Options{
		Keyspace: s.keyspace, Clock: c, Keeper: s.persistence, Host: r, Source: r.source,
		Dial: r.dialLink, Settings: r.settings, Stopwatch: s.stopwatch, Log: s.log,
		Foreign: foreign, Serve: foreign.serve, Replica: settings().Host != "",
	})
	s.replicator, o.Node = r, nodeOf{r.node, foreign}
}

// replicator joins a node of package replication with the server: it is the [replication.Host],
// and holds replies back until enough replicas have acknowledged their effects.
type replicator struct {
	s      *Server
	source *replication.Source
	node   *replication.Node

	// replies is repl-ack-replies.
	replies atomic.Int32
	// overdue is the position of the log that was reached repl-ack-timeout ago. Replies no longer wait
	// for replicas to acknowledge what is before it.
	overdue atomic.Uint64
	// forgone is the position of the log at which this server last ceased to be a primary.
	forgone atomic.Uint64
	reached []reachedAt // of the goroutine of watch
}

// begin follows the primary that the configuration names.
func (r *replicator) begin() {
	if r == nil {
		return
	}
	r.node.PutInForce()
	if primary := r.s.config.Replication(); primary.Host != "" {
		r.node.Follow(primary.Host, primary.Port)
	}
}

// settings are those of the configuration.
func (r *replicator) settings() replication.Settings {
	c := r.s.config.Replication()
	return replication.Settings{
		User: c.User, Password: c.Password, AnnounceIP: c.AnnounceIP, Port: r.port(&c), Announced: c.Announced,
		Listens:  []int{r.s.tcpPort(), int(r.s.config.Number("tls-port"))},
		Priority: c.Priority, Timeout: c.Timeout, ServeStale: c.ServeStaleData, RefuseOther: c.RefuseOther,
		BacklogSize: c.BacklogSize, MinReplicas: c.MinReplicas, MinReplicasMaxLag: c.MaxLag,
	}
}

// port is where replicas say that they listen.
func (r *replicator) port(c *config.Replication) int {
	if c.AnnouncePort != 0 {
		return c.AnnouncePort
	}
	if port := int(r.s.config.Number("tls-port")); port != 0 && c.TLS {
		return port
	}
	return int(r.s.port.Load())
}

// refuses reports whether this server is a replica that refuses the keys of its primary.
func (r *replicator) refuses() bool { return r != nil && r.node.Refuses() }

// run replicates until ctx ends. The state is loaded.
func (r *replicator) run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { r.watch(ctx) })
	_ = r.node.Run(ctx) // it ends with ctx only
	watching.Wait()
	r.source.Close()
}

// The halts that a node sets. They implement replication.Host, as all below.

// SetReadOnly refuses changes by clients. A new primary has policies that its file defines.
func (r *replicator) SetReadOnly(on bool) {
	r.s.engine.SetHalt(command.HaltReadOnly, on)
	if !on && r.s.policies.file != nil {
		r.s.engine.Spawn(r.s.settlePolicies)
	}
}

// SetMasterDown refuses most commands.
func (r *replicator) SetMasterDown(on bool) { r.s.engine.SetHalt(command.HaltMasterDown, on) }

// SetNoReplicas refuses changes while there are too few replicas.
func (r *replicator) SetNoReplicas(on bool) { r.s.engine.SetHalt(command.HaltNoReplicas, on) }

// SetLoading has clients wait for a full sync, as for loading from disk.
func (r *replicator) SetLoading(on bool) { r.s.engine.SetLoading(on) }

// PauseWrites has commands that may change something wait.
func (r *replicator) PauseWrites() { r.s.engine.PauseHandover() }

// Resume lets them go on.
func (r *replicator) Resume() { r.s.engine.EndHandover() }

// Unblock ends the waits that only a primary may end.
func (r *replicator) Unblock() {
	r.s.engine.UnblockAll()
	r.forgo()
}

// SetPrimary has CONFIG GET and CONFIG REWRITE say whom this server follows.
func (r *replicator) SetPrimary(host, port string) { r.s.config.SetPrimary(host, port) }
