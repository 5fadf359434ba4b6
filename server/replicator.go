package server

import (
	"context"
	"sync"
	"time"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/redis"
	"github.com/cellserver/cellserver/transport"
)

// openReplication creates the replication node, which is a primary until it is told to follow one.
// There is no node if the keys are in another store, or if the clock, as in some tests, cannot
// follow another one.
func (s *Server) openReplication(o *env.Options) {
	c, ok := s.clock.(replication.Clock)
	if s.config.Remote() || !ok {
		return
	}
	r := &replicator{s: s}
	link := newRedisLink(r)
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
	replicas := &redis.Replicas{Keyspace: s.keyspace, Source: r.source, Log: s.log}
	r.node = replication.New(replication.Options{
		Keyspace: s.keyspace, Clock: c, Files: s.persistence, Host: r, Source: r.source,
		Dial: r.dialLink, Settings: r.settings, Stopwatch: s.stopwatch, Log: s.log,
		Redis: link, ServeRedis: replicas.Serve, Replica: settings().Host != "",
	})
	r.barrier = replication.ReplyBarrier{
		Node: r.node, Source: r.source, Log: s.persistence.Log, Stopwatch: s.stopwatch,
		Timeout: func() time.Duration { return s.config.Milliseconds("repl-ack-timeout") },
	}
	s.replicator, o.Node = r, nodeWithRedis{r.node, link, replicas}
}

// replicator connects a node of package replication with the server, as its [replication.Host].
type replicator struct {
	s       *Server
	source  *replication.Source
	node    *replication.Node
	barrier replication.ReplyBarrier
}

// begin makes the node a replica of the primary that the configuration names.
func (r *replicator) begin() {
	if r == nil {
		return
	}
	r.node.PutInForce()
	if primary := r.s.config.Replication(); primary.Host != "" {
		r.node.ReplicaOf(primary.Host, primary.Port)
	}
}

// settings returns the options about replication.
func (r *replicator) settings() replication.Settings {
	c := r.s.config.Replication()
	return replication.Settings{
		User: c.User, Password: c.Password, AnnounceIP: c.AnnounceIP, Port: r.port(&c), Announced: c.Announced,
		Listens:  []int{r.s.tcpPort(), int(r.s.config.Number("tls-port"))},
		Priority: c.Priority, Timeout: c.Timeout, ServeStale: c.ServeStaleData, RefuseOther: c.RefuseOther,
		BacklogSize: c.BacklogSize, MinReplicas: c.MinReplicas, MinReplicasMaxLag: c.MaxLag,
	}
}

// port returns the port that a replica announces.
func (r *replicator) port(c *config.Replication) int {
	if c.AnnouncePort != 0 {
		return c.AnnouncePort
	}
	if port := int(r.s.config.Number("tls-port")); port != 0 && c.TLS {
		return port
	}
	return int(r.s.port.Load())
}

// refuses reports whether this server is a replica that refuses the state of its primary.
func (r *replicator) refuses() bool { return r != nil && r.node.Refuses() }

// run replicates until ctx ends. The state must be loaded.
func (r *replicator) run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { r.barrier.Run(ctx) })
	_ = r.node.Run(ctx) // it ends with ctx only
	watching.Wait()
	r.source.Close()
}

// The methods below implement [replication.Host]. Most set a halt.

// SetReadOnly refuses changes by clients. A new primary applies its policy file.
func (r *replicator) SetReadOnly(on bool) {
	r.s.engine.SetHalt(command.HaltReadOnly, on)
	if !on && r.s.policies.file != nil {
		r.s.engine.Spawn(r.s.settlePolicies)
	}
}

// SetMasterDown refuses most commands while the link to the primary is down.
func (r *replicator) SetMasterDown(on bool) { r.s.engine.SetHalt(command.HaltMasterDown, on) }

// SetNoReplicas refuses changes while there are too few replicas.
func (r *replicator) SetNoReplicas(on bool) { r.s.engine.SetHalt(command.HaltNoReplicas, on) }

// SetLoading refuses commands during a full synchronization, as while files are loaded.
func (r *replicator) SetLoading(on bool) { r.s.engine.SetLoading(on) }

// PauseWrites postpones commands that may change something.
func (r *replicator) PauseWrites() { r.s.engine.PauseHandover() }

// Resume ends PauseWrites.
func (r *replicator) Resume() { r.s.engine.EndHandover() }

// Unblock ends the waits whose clients only a primary can answer.
func (r *replicator) Unblock() {
	r.s.engine.UnblockAll()
	r.barrier.Abandon()
}

// SetPrimary sets the primary that CONFIG GET and CONFIG REWRITE show.
func (r *replicator) SetPrimary(host, port string) { r.s.config.SetPrimary(host, port) }

// putInForce applies the options of the configuration.
func (r *replicator) putInForce() {
	if r == nil {
		return
	}
	r.barrier.SetReplicas(int(r.s.config.Number("repl-ack-replies")))
	r.node.PutInForce()
}

// await reports whether the reply to a change may leave; see [replication.ReplyBarrier].
func (r *replicator) await(position uint64, p transport.Peer) transport.Outcome {
	if r == nil {
		return transport.Kept
	}
	return r.barrier.Await(position, p)
}

// delays reports whether replies to changes wait for replicas.
func (r *replicator) delays() bool { return r != nil && r.barrier.Delays() }
