package simulation_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cellserver/cellserver/internal/faultfs"
	"github.com/cellserver/cellserver/internal/inproc"
)

// some returns a random duration below most.
func (s *Sim) some(most time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(most))) }

// pair returns two different nodes; ok is false if there is only one.
func (s *Sim) pair() (a, b int, ok bool) {
	if len(s.nodes) < 2 {
		return 0, 0, false
	}
	a = s.rng.IntN(len(s.nodes))
	return a, (a + 1 + s.rng.IntN(len(s.nodes)-1)) % len(s.nodes), true
}

// fault causes one fault, and lets some time pass.
func (s *Sim) fault() {
	if !s.isWhole() && !s.wait() {
		return
	}
	s.faults++
	kinds := []func(){s.slow, s.held, s.parted, s.cut, s.cutAfter, s.dropClients, s.disk, s.snapshot, s.handover, s.handover, s.promotion, s.alone}
	if s.plan.Deaths {
		kinds = append(kinds, s.death, s.death, s.death, s.death)
	}
	switch s.plan.Focus {
	case Handovers:
		kinds = []func(){s.slow, s.cut, s.cutAfter, s.handover, s.handover, s.handover, s.handover, s.handover}
	case Deaths:
		if s.plan.Deaths {
			kinds = append(kinds, s.death, s.death, s.death, s.death, s.death, s.death, s.death, s.death)
		}
	case Promotions:
		if s.plan.Acks == s.plan.Replicas {
			kinds = []func(){s.slow, s.cut, s.parted, s.held, s.promotion, s.promotion, s.promotion}
		}
	default:
	}
	kinds[s.rng.IntN(len(kinds))]()
	s.w.Advance(s.some(1500 * time.Millisecond))
}

// wait lets time pass until the cluster is whole, up to a bound.
func (s *Sim) wait() bool {
	for range 200 {
		if s.isWhole() {
			return true
		}
		s.w.Advance(100 * time.Millisecond)
	}
	return false
}

// slow delays all links, usually a little and sometimes a lot.
func (s *Sim) slow() {
	seed, most, often := s.rng.Uint64(), 1+s.rng.IntN(10), []int{50, 50, 5}[s.rng.IntN(3)]
	s.events.add("links are slow: up to %d ms, and one time of %d up to 500 ms", most, often)
	s.links(func(from, to string, i int) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		var mu sync.Mutex // the connections between two nodes share the delay
		s.w.Net.Delay(from, to, func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if rng.IntN(often) == 0 {
				return time.Duration(rng.IntN(500)) * time.Millisecond
			}
			return time.Duration(rng.IntN(most*1000)) * time.Microsecond
		})
	})
}

// delay delays everything that a host sends.
func (s *Sim) delay(host string, d func() time.Duration) {
	for _, n := range s.nodes {
		if n.Host != host {
			s.w.Net.Delay(host, n.Host, d)
		}
	}
}

// links calls f for each direction between two nodes.
func (s *Sim) links(f func(from, to string, i int)) {
	for i, a := range s.nodes {
		for j, b := range s.nodes {
			if i != j {
				f(a.Host, b.Host, i*10+j)
			}
		}
	}
}

// held holds one direction for a time.
func (s *Sim) held() {
	a, b, ok := s.pair()
	if !ok {
		return
	}
	d := s.some(8 * time.Second)
	s.events.add("nothing of node %d arrives at node %d for %v", a, b, d)
	s.w.Net.Hold(s.nodes[a].Host, s.nodes[b].Host)
	s.w.Advance(d)
	s.glance("while a link is held")
	s.w.Net.Release(s.nodes[a].Host, s.nodes[b].Host)
}

// parted holds all links between a node and the others, and perhaps those to the sentinels.
func (s *Sim) parted() {
	a, _, ok := s.pair()
	if !ok {
		return
	}
	d, all := s.some(9*time.Second), s.rng.IntN(2) == 0
	s.events.add("node %d is apart for %v, from sentinels %t", a, d, all)
	for i, n := range s.nodes {
		if i != a {
			s.w.Net.Part(s.nodes[a].Host, n.Host)
		}
	}
	if s.sentinel != nil && all {
		for _, v := range s.sentinel.voters {
			s.w.Net.Part(s.nodes[a].Host, v.host)
		}
	}
	s.w.Advance(d)
	s.glance("while a node is apart")
	s.join()
}

// join ends all holds.
func (s *Sim) join() {
	for i, n := range s.nodes {
		for _, m := range s.nodes[i+1:] {
			s.w.Net.Join(n.Host, m.Host)
		}
		if s.sentinel != nil {
			for _, v := range s.sentinel.voters {
				s.w.Net.Join(n.Host, v.host)
			}
		}
	}
}

// cut resets the connections between two nodes, several times in a row.
func (s *Sim) cut() {
	for range 1 + s.rng.IntN(5) {
		a, b, ok := s.pair()
		if !ok {
			return
		}
		s.events.add("connections between node %d and node %d are cut", a, b)
		s.w.Net.Cut(s.nodes[a].Host, s.nodes[b].Host)
		s.w.Net.Cut(s.nodes[b].Host, s.nodes[a].Host)
		s.w.Advance(s.some(2 * time.Second))
	}
}

// cutAfter resets the connections between two nodes after a number of bytes.
func (s *Sim) cutAfter() {
	for range 1 + s.rng.IntN(5) {
		a, b, ok := s.pair()
		if !ok {
			return
		}
		n := s.rng.IntN(1 << (1 + s.rng.IntN(13)))
		s.events.add("connections of node %d are cut %d bytes on towards node %d", a, n, b)
		s.w.Net.CutAfter(s.nodes[a].Host, s.nodes[b].Host, n)
		s.w.Advance(s.some(2 * time.Second))
	}
}

// dropClients makes a node close connections.
func (s *Sim) dropClients() {
	a := s.rng.IntN(len(s.nodes))
	kind := []string{"normal", "replica"}[s.rng.IntN(2)]
	s.events.add("node %d ends its connections of type %s", a, kind)
	s.do(s.nodes[a], "CLIENT", "KILL", "TYPE", kind)
}

// disk makes the disk of a node fail for a time.
func (s *Sim) disk() {
	a := s.rng.IntN(len(s.nodes))
	seed, which, share := s.rng.Uint64(), s.rng.IntN(4), 1+s.rng.IntN(4)
	rng := rand.New(rand.NewPCG(seed, 1))
	errs := []error{syscall.ENOSPC, faultfs.ErrShort, syscall.EIO, syscall.EIO}
	d := s.some(3 * time.Second)
	s.events.add("the disk of node %d fails for %v: %v, one call of %d", a, d, errs[which], share)
	disk := s.nodes[a].Disk
	disk.Inject(func(_ int, c faultfs.Call) error {
		if which == 2 && c.Op != "sync" || which < 2 && c.Op != "write" && c.Op != "create" || c.Op == "read" || c.Op == "lock" || c.Op == "close" {
			return nil
		}
		if errors.Is(errs[which], faultfs.ErrShort) && c.Op != "write" || rng.IntN(share) > 0 {
			return nil
		}
		return errs[which]
	})
	s.w.Advance(d)
	s.glance("while a disk fails")
	disk.Inject(nil)
}

// snapshot makes a node write a snapshot.
func (s *Sim) snapshot() {
	if !s.plan.Kept {
		return
	}
	a := s.rng.IntN(len(s.nodes))
	s.events.add("node %d writes a snapshot", a)
	s.do(s.nodes[a], "BGREWRITEAOF")
}

// handover sends FAILOVER to the primary, perhaps while a link is slow, held or cut.
func (s *Sim) handover() {
	if len(s.nodes) < 2 {
		return
	}
	from := s.leader()
	command := []string{"FAILOVER"}
	if s.rng.IntN(2) == 0 {
		to := s.nodes[s.rng.IntN(len(s.nodes))]
		command = append(command, "TO", to.Host, "6379")
	}
	if s.rng.IntN(2) == 0 {
		command = append(command, "TIMEOUT", strconv.Itoa(1+s.rng.IntN(3000)))
	}
	if s.rng.IntN(2) == 0 {
		s.slow()
		s.w.Advance(s.some(500 * time.Millisecond)) // something is in transit
	}
	switch s.rng.IntN(4) {
	case 0:
		s.cutAfter()
	case 1: // replicas have just reconnected, and lack something
		for _, n := range s.nodes {
			s.w.Net.CutAfter(from.Host, n.Host, s.rng.IntN(4000))
		}
		s.w.Advance(s.some(200 * time.Millisecond))
	case 2: // bytes in transit take long, and those of new connections do not
		d := 200*time.Millisecond + s.some(time.Second)
		s.events.add("the primary's links are slow by %v, until now", d)
		s.delay(from.Host, func() time.Duration { return d })
		s.w.Advance(s.some(d))
		s.delay(from.Host, nil)
	default:
	}
	s.events.add("%v says %q", command, s.do(from, command...))
	s.w.Advance(s.some(3 * time.Second))
	if s.rng.IntN(4) == 0 {
		s.cut()
	}
	if s.rng.IntN(3) == 0 {
		s.events.add("FAILOVER ABORT says %q", s.do(from, "FAILOVER", "ABORT"))
	}
}

// promotion makes an operator promote a replica, which the others then follow, as with SENTINEL
// FAILOVER: writes in transit are lost unless replies wait for all replicas.
func (s *Sim) promotion() {
	if len(s.nodes) < 2 || s.plan.Sentinel && s.rng.IntN(2) == 0 {
		return
	}
	i := s.rng.IntN(len(s.nodes))
	if i == int(s.primary.Load()) {
		return
	}
	if s.plan.Acks < s.plan.Replicas {
		s.excuse("a replica is promoted that may not have everything")
	}
	if s.rng.IntN(2) == 0 {
		d := 100*time.Millisecond + s.some(time.Second)
		s.events.add("the primary's links to node %d are slow by %v", i, d)
		s.w.Net.Delay(s.leader().Host, s.nodes[i].Host, func() time.Duration { return d })
		s.w.Advance(s.some(d))
		s.w.Net.Delay(s.leader().Host, s.nodes[i].Host, nil)
	}
	s.events.add("node %d is promoted: %q", i, s.do(s.nodes[i], "REPLICAOF", "NO", "ONE"))
	s.w.Advance(s.some(200 * time.Millisecond))
	s.elect(i, "operator")
}

// elect makes all other nodes follow node i.
func (s *Sim) elect(i int, who string) {
	s.primary.Store(int32(i))
	for j, n := range s.nodes {
		if j != i && !s.dead[j] {
			s.events.add("%s: node %d is to follow node %d: %q", who, j, i, s.do(n, "REPLICAOF", s.nodes[i].Host, "6379"))
		}
	}
}

// alone makes a replica a primary for a moment, and then a replica again: it has its own
// replication ID by then, so it needs a full resynchronization.
func (s *Sim) alone() {
	if len(s.nodes) < 2 || s.plan.Sentinel || s.plan.Acks < s.plan.Replicas {
		return
	}
	i := (int(s.primary.Load()) + 1) % len(s.nodes)
	s.events.add("node %d leads for a moment: %q", i, s.do(s.nodes[i], "REPLICAOF", "NO", "ONE"))
	s.w.Advance(s.some(time.Second))
	s.do(s.nodes[i], "REPLICAOF", s.leader().Host, "6379")
}

// death makes a node die and restart.
func (s *Sim) death() {
	i, crash := s.rng.IntN(len(s.nodes)), s.rng.IntN(2) == 0
	if s.rng.IntN(2) == 0 {
		i = int(s.primary.Load())
	}
	is := s.role(i)
	primary := is["role"] == "master"
	lost := !s.plan.Kept || crash && !s.plan.Always
	// Replicas refuse a primary that restarts at an earlier state or empty.
	back := s.some(300 * time.Millisecond)
	if primary && s.plan.Sentinel && (lost || s.rng.IntN(2) == 0) {
		back = 12*time.Second + s.some(10*time.Second)
	} else if primary && lost && !s.plan.refuses() {
		s.excuse("the primary dies, and its files do not have everything")
	}
	if s.rng.IntN(4) == 0 {
		back += s.some(5 * time.Second)
	}
	options := []string{"--replicaof", ""}
	if !primary {
		options[1] = is["master_host"] + " 6379"
	}
	s.events.add("node %d (%s) dies: power %t, back after %v, files lack something %t", i, is["role"], crash, back, lost)
	s.die(i, crash)
	s.w.Advance(back)
	s.glance("while a node is dead")
	s.revive(i, options...)
}

// die ends a node: at once, or at one of its next calls to the disk, such as an fsync whose callers
// may have been answered too early.
func (s *Sim) die(i int, crash bool) {
	n := s.nodes[i]
	n.Disk.Inject(nil)
	if s.plan.Kept && s.rng.IntN(2) == 0 {
		s.await(n, crash, 1+s.rng.IntN(6))
	}
	s.dead[i] = true
	if crash {
		n.Crash(s.rng)
	} else {
		n.Kill()
	}
}

// await waits until the disk of a node is about to write or to sync for the nth time, or for a
// second. From then on nothing that the node does has an effect, also not on its disk.
func (s *Sim) await(n *inproc.Node, crash bool, calls int) {
	op := "write"
	if crash {
		op = "sync"
	}
	var over atomic.Bool
	n.Disk.Inject(func(_ int, c faultfs.Call) error {
		if c.Op == op {
			calls--
		}
		if calls > 0 {
			return nil
		}
		if !over.Load() {
			for range 100 {
				runtime.Gosched() // replies that were already sent arrive
			}
			s.w.Net.Unplug(n.Host)
			over.Store(true)
		}
		return syscall.EIO
	})
	for range 100 {
		if s.w.Advance(10 * time.Millisecond); over.Load() {
			s.events.add("the end comes at a %s", op)
			return
		}
	}
	n.Disk.Inject(nil)
}

// revive restarts a node, sometimes with another wall clock.
func (s *Sim) revive(i int, options ...string) {
	if s.rng.IntN(4) == 0 {
		d := s.some(20*time.Second) - 10*time.Second
		s.events.add("the clock of node %d jumps by %v", i, d)
		s.nodes[i].Skew(d)
		s.back[i] = s.back[i] || d < 0
		s.mu.Lock()
		s.ahead += max(d, -d)
		s.mu.Unlock()
	}
	if s.back[i] { // its clock continues after all effects, whose times it knows to the second
		s.mu.Lock()
		s.ahead += time.Second
		s.mu.Unlock()
	}
	s.nodes[i].Restart(options...)
	s.dead[i] = false
	s.events.add("node %d runs again with %s", i, strings.Join(options, " "))
}

// heal ends all lasting faults.
func (s *Sim) heal() {
	s.links(func(from, to string, _ int) { s.w.Net.Delay(from, to, nil) })
	s.join()
	for _, n := range s.nodes {
		n.Disk.Inject(nil)
	}
}
