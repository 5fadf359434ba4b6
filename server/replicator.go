package server

import (
	"context"
	"sync"
	"time"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/replication"
	"github.com/cellserver/cellserver/replication/redis"
	"github.com/cellserver/cellserver/transport"
)

// openReplication creates the replication node, and sets s.replicator and o.Node. The node is a
// primary until it begins to follow another server. With the option store, with a manual clock, or
// if the clock cannot follow another clock, as in some tests, s.replicator stays nil.
func (s *Server) openReplication(o *env.Options) {
	c, ok := s.clock.(replication.Clock)
	if !s.config.Kept() || !ok {
		o.Node = env.Standalone{RunID: o.Process.RunID(), Manual: s.config.ManualClock()}
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

// replicator connects a node of package replication with the server, as the node's
// [replication.Host], and with the persistence, as its [manager.Replication]. A nil *replicator
// means that nothing is replicated.
type replicator struct {
	s       *Server
	source  *replication.Source
	node    *replication.Node
	barrier replication.ReplyBarrier
}

// begin applies the settings of replication, and makes the node a replica of the primary that the
// configuration names. If it names none, the node stays a primary. begin does nothing if nothing is
// replicated.
func (r *replicator) begin() {
	if r == nil {
		return
	}
	r.node.PutInForce()
	if primary := r.s.config.Replication(); primary.Host != "" {
		r.node.ReplicaOf(primary.Host, primary.Port)
	}
}

// settings returns the present settings of replication.
func (r *replicator) settings() replication.Settings {
	c := r.s.config.Replication()
	return replication.Settings{
		User: c.User, Password: c.Password, AnnounceIP: c.AnnounceIP, Port: r.port(&c), Announced: c.Announced,
		Listens:  []int{r.s.tcpPort(), int(r.s.config.Number("tls-port"))},
		Priority: c.Priority, Timeout: c.Timeout, ServeStale: c.ServeStaleData, RefuseOther: c.RefuseOther,
		BacklogSize: c.BacklogSize, MinReplicas: c.MinReplicas, MinReplicasMaxLag: c.MaxLag,
	}
}

// port returns the port that this server announces to its primary. It is replica-announce-port if
// that is set, else tls-port if replication uses TLS, else the TCP port.
func (r *replicator) port(c *config.Replication) int {
	if c.AnnouncePort != 0 {
		return c.AnnouncePort
	}
	if port := int(r.s.config.Number("tls-port")); port != 0 && c.TLS {
		return port
	}
	return int(r.s.port.Load())
}

// refuses reports whether this server is a replica that has refused the data set of its primary. It
// returns false if nothing is replicated.
func (r *replicator) refuses() bool { return r != nil && r.node.Refuses() }

// run runs the node and the barrier for replies until ctx ends, and then closes the source. The
// files must have been loaded.
func (r *replicator) run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { r.barrier.Run(ctx) })
	_ = r.node.Run(ctx) // Run returns only when ctx ends
	watching.Wait()
	r.source.Close()
}

// The methods below implement [replication.Host]. Those with the parameter on begin a condition in
// which the engine refuses commands if on is true, and end it if on is false.

// SetReadOnly makes the engine refuse changes by clients if on is true. If on is false, the server
// has become a primary, and SetReadOnly also applies the policy file in the background.
func (r *replicator) SetReadOnly(on bool) {
	r.s.engine.SetHalt(command.HaltReadOnly, on)
	if !on && r.s.policies.file != nil {
		r.s.engine.Spawn(r.s.settlePolicies)
	}
}

// SetMasterDown makes the engine refuse most commands if on is true, because the link to the
// primary is down.
func (r *replicator) SetMasterDown(on bool) { r.s.engine.SetHalt(command.HaltMasterDown, on) }

// SetNoReplicas makes the engine refuse changes while too few replicas would receive them, if on is
// true.
func (r *replicator) SetNoReplicas(on bool) { r.s.engine.SetHalt(command.HaltNoReplicas, on) }

// SetLoading makes the engine refuse commands with LOADING errors if on is true, during a full
// resynchronization.
func (r *replicator) SetLoading(on bool) { r.s.engine.SetLoading(on) }

// PauseWrites makes the engine delay commands that may change something, and suspends the removal
// of expired keys, until Resume.
func (r *replicator) PauseWrites() { r.s.engine.PauseHandover() }

// Resume ends the effect of PauseWrites.
func (r *replicator) Resume() { r.s.engine.EndHandover() }

// Unblock ends, with errors, the waits of blocked clients and of replies that wait for replicas,
// because this server becomes a replica.
func (r *replicator) Unblock() {
	r.s.engine.UnblockAll()
	r.barrier.Abandon()
}

// SetPrimary sets the primary that CONFIG GET shows and CONFIG REWRITE writes.
func (r *replicator) SetPrimary(host, port string) { r.s.config.SetPrimary(host, port) }

// putInForce applies the present settings of replication, if anything is replicated.
func (r *replicator) putInForce() {
	if r == nil {
		return
	}
	r.barrier.SetReplicas(int(r.s.config.Number("repl-ack-replies")))
	r.node.PutInForce()
}

// The methods below implement [manager.Replication].

// Await reports whether the reply to the change at position may be sent to p; see
// [replication.ReplyBarrier].
func (r *replicator) Await(position uint64, p transport.Peer) transport.Outcome {
	return r.barrier.Await(position, p)
}

// Delays reports whether replies to changes wait for acknowledgements of replicas.
func (r *replicator) Delays() bool { return r.barrier.Delays() }

// IsWhole reports whether memory has a complete state.
func (r *replicator) IsWhole() bool { return r.node.IsWhole() }
