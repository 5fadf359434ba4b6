package simulation_test

import (
	"strconv"
	"strings"
	"sync"
	"time"
)

// Times of the model of Sentinel.
const (
	downAfter = 1500 * time.Millisecond
	// strayAfter is how long a node may have a wrong role before it is corrected.
	strayAfter = 8 * time.Second
)

// sentinel is a model of three sentinels: each polls all nodes from its own host, and knows their
// replies of up to half a second ago. The first one acts when two of them miss the primary.
type sentinel struct {
	s       *Sim
	voters  []*voter
	quit    chan struct{}
	running sync.WaitGroup
	changed time.Time // when the primary last changed
}

// voter is one of the three sentinels.
type voter struct {
	host string
	mu   sync.Mutex // guards the fields below
	seen []sight    // by node
}

// sight is what a voter knows about a node.
type sight struct {
	at     time.Time // time of its last reply
	fields map[string]string
	stray  time.Time // since when it has had the wrong role; zero if it has the right one
}

func newSentinel(s *Sim) *sentinel {
	n := &sentinel{s: s, quit: make(chan struct{})}
	for range 3 {
		v := &voter{host: s.w.Host(), seen: make([]sight, len(s.nodes))}
		for i := range v.seen {
			v.seen[i].at = time.Now()
		}
		n.voters = append(n.voters, v)
	}
	for _, v := range n.voters {
		for i := range s.nodes {
			n.running.Go(func() { n.watch(v, i) })
		}
	}
	n.running.Go(n.act)
	return n
}

func (n *sentinel) stop() {
	close(n.quit)
	n.running.Wait()
}

// pause waits, and reports whether to continue.
func (n *sentinel) pause(d time.Duration) bool {
	select {
	case <-n.quit:
		return false
	case <-time.After(d):
		return true
	}
}

// from sends a command to a node from the host of a voter.
func (n *sentinel) from(v *voter, i int, args ...string) string {
	l, err := n.s.dial(v.host, n.s.nodes[i])
	if err != nil {
		return ""
	}
	defer l.close()
	replies, err := l.ask(500*time.Millisecond, args)
	if err != nil {
		return ""
	}
	return replies[0]
}

// watch polls a node for its role.
func (n *sentinel) watch(v *voter, i int) {
	for n.pause(500 * time.Millisecond) {
		reply := n.from(v, i, "INFO", "replication")
		if !strings.Contains(reply, "role:") {
			continue
		}
		v.mu.Lock()
		v.seen[i].at, v.seen[i].fields = time.Now(), fields(reply)
		v.mu.Unlock()
	}
}

// fields returns the fields of a reply to INFO.
func fields(reply string) map[string]string {
	all := map[string]string{}
	for text := range strings.SplitSeq(reply, "\r\n") {
		if name, value, ok := strings.Cut(text, ":"); ok {
			all[name] = value
		}
	}
	return all
}

// sight returns what a voter knows about a node.
func (v *voter) sight(i int) sight {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen[i]
}

// act promotes a replica when the primary is missing, and corrects nodes with a wrong role.
func (n *sentinel) act() {
	for n.pause(300 * time.Millisecond) {
		primary, missing := int(n.s.primary.Load()), 0
		for _, v := range n.voters {
			if time.Since(v.sight(primary).at) > downAfter {
				missing++
			}
		}
		if missing >= 2 {
			n.promote(primary)
			continue
		}
		n.correct(primary)
	}
}

// promote promotes the replica with the greatest known offset.
func (n *sentinel) promote(primary int) {
	v, best, offset := n.voters[0], -1, int64(-1)
	for i := range n.s.nodes {
		is := v.sight(i)
		if i == primary || time.Since(is.at) > downAfter || is.fields["role"] != "slave" || is.fields["slave_priority"] == "0" {
			continue
		}
		if at, err := strconv.ParseInt(is.fields["slave_repl_offset"], 10, 64); err == nil && at > offset {
			best, offset = i, at
		}
	}
	if best < 0 {
		return
	}
	reply := n.from(v, best, "REPLICAOF", "NO", "ONE")
	n.s.events.add("sentinel: node %d is promoted in place of node %d: %q", best, primary, reply)
	if reply != "+OK\r\n" {
		return
	}
	n.s.primary.Store(int32(best))
	n.changed = time.Now()
	for i := range n.s.nodes {
		if i != best && i != primary {
			n.follow(v, i, best)
		}
	}
}

func (n *sentinel) follow(v *voter, i, primary int) {
	reply := n.from(v, i, "REPLICAOF", n.s.nodes[primary].Host, "6379")
	n.s.events.add("sentinel: node %d is to follow node %d: %q", i, primary, reply)
}

// correct notices a handover, and makes nodes follow the primary that have had a wrong role for
// long.
func (n *sentinel) correct(primary int) {
	v := n.voters[0]
	if is := v.sight(primary); is.fields["role"] == "slave" && is.at.After(n.changed) {
		for i := range n.s.nodes {
			other := v.sight(i)
			if i != primary && n.s.nodes[i].Host == is.fields["master_host"] && other.fields["role"] == "master" && other.at.After(n.changed) && time.Since(other.at) < downAfter {
				n.s.events.add("sentinel: node %d has taken over from node %d", i, primary)
				n.s.primary.Store(int32(i))
				n.changed = time.Now()
				return
			}
		}
		return
	}
	for i := range n.s.nodes {
		v.mu.Lock()
		is := &v.seen[i]
		astray := i != primary && is.fields != nil && is.fields["master_host"] != n.s.nodes[primary].Host
		if !astray {
			is.stray = time.Time{}
		} else if is.stray.IsZero() {
			is.stray = time.Now()
		}
		due := astray && time.Since(is.stray) > strayAfter
		if due {
			is.stray = time.Time{}
		}
		v.mu.Unlock()
		if due {
			n.follow(v, i, primary)
		}
	}
}
