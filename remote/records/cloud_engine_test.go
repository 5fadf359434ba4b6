package records_test

import (
	"context"
	"slices"
	"time"

	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/engine"
	"github.com/cellserver/cellserver/remote/records"
)

const (
	cloudEpoch = limit.Instant(1_800_000_000 * time.Second)
	// requestTime is the time after which a request without a reply has failed: the default of [records.Options].
	requestTime = 2 * time.Second
)

// node is a node of the engine.
type node struct {
	m     *remotedouble.Records
	has   int           // the length of the stream that it has
	skew  time.Duration // by which its clock is ahead
	lag   time.Duration // of its stream behind that of the master
	stuck time.Duration // it takes nothing over before that
	// connected says that the master counts it. One that is not takes nothing over.
	connected bool
}

// written is an element of the stream of replication.
type written struct {
	script     string
	keys, args []string
}

// writing says what a process writes: the change, nil for the removal of ended entries, and its parts.
type writing struct {
	made *change
	ops  []op
}

// span is the time from an instant on at which the engine had a version.
type span struct {
	from time.Duration
	*version
}

// cluster is an engine: a master and replicas that have a part of its stream.
type cluster struct {
	w        *cloud
	master   *node // nil while there is none
	replicas []*node
	stream   []written
	term     int // counts the masters
	// head is the version of the master, spans all that it has had, and chain the history of the head, by number.
	head  *version
	spans []span
	chain []*version
	// versions has all versions by their texts, and sent what the commits write.
	versions map[string]*version
	sent     map[string]writing
	lost     int // the number of versions that failovers have taken
}

func newCluster(w *cloud, replicas int) *cluster {
	c := &cluster{w: w, versions: map[string]*version{}, sent: map[string]writing{}}
	c.head = &version{entries: entries{}}
	c.versions[""], c.chain, c.spans = c.head, []*version{c.head}, []span{{0, c.head}}
	c.master = &node{m: remotedouble.NewRecords(), skew: w.skew()}
	for range replicas {
		c.replicas = append(c.replicas, c.replica(c.master))
	}
	return c
}

// replica returns a new replica with a copy of what of has.
func (c *cluster) replica(of *node) *node {
	return &node{m: of.m.Clone(), has: of.has, skew: c.w.skew(), lag: c.w.upTo(20 * time.Millisecond), connected: true}
}

// run runs a script at the master.
func (c *cluster) run(script string, keys, args []string) any {
	m := c.master.m
	m.Now = int64(c.w.instant().Add(c.master.skew))
	before := m.Strings[head]
	reply := m.Run(script, keys, args)
	switch records.ScriptName(script) {
	case "commit":
		if now := m.Strings[head]; now != before {
			c.commits(now)
			c.write(script, keys, args)
		}
	case "ids":
		if len(keys) > 2 {
			c.write(script, keys, args)
		}
	}
	m.Done = nil
	return reply
}

// commits notes that the master has the version.
func (c *cluster) commits(text string) {
	v, err := records.ParseVersion(text)
	if err != nil {
		panic(err)
	}
	is := c.sent[text]
	next := &version{Version: v, entries: c.head.entries.with(is.ops), previous: c.head, made: is.made}
	c.head, c.versions[text] = next, next
	c.chain = append(c.chain, next)
	c.spans = append(c.spans, span{c.w.now, next})
	if is.made != nil {
		is.made.versions = append(is.made.versions, next)
	}
	c.w.tell()
}

func (c *cluster) write(script string, keys, args []string) {
	c.stream = append(c.stream, written{script, keys, args})
	c.master.has = len(c.stream)
	for _, r := range c.replicas {
		term := c.term
		c.w.after(r.lag, func() {
			if c.term == term {
				c.replicate(r)
			}
		})
	}
}

// replicate lets r take over what it should have by now.
func (c *cluster) replicate(r *node) {
	if !r.connected {
		return
	}
	if wait := r.stuck - c.w.now; wait > 0 {
		c.w.after(wait, func() { c.replicate(r) })
		return
	}
	for ; r.has < len(c.stream); r.has++ {
		r.m.Now = int64(c.w.instant().Add(r.skew))
		r.m.Run(c.stream[r.has].script, c.stream[r.has].keys, c.stream[r.has].args)
		r.m.Done = nil
	}
}

// die ends the master. The replica that has the most takes over after d, and the dead node comes back as a replica later.
// Without a replica the node is started again with what it had.
func (c *cluster) die(d time.Duration) {
	dead := c.master
	c.master = nil
	c.term++
	c.w.engineAway(d)
	c.w.after(d, func() {
		next := dead
		if len(c.replicas) > 0 {
			next = slices.MaxFunc(c.replicas, func(a, b *node) int { return a.has - b.has })
			c.replicas = slices.DeleteFunc(c.replicas, func(r *node) bool { return r == next })
			term := c.term
			c.w.after(time.Second+c.w.upTo(time.Minute), func() {
				if c.term == term {
					c.replicas = append(c.replicas, c.replica(c.master))
				}
			})
		}
		c.promote(next)
	})
}

// promote makes n the master.
func (c *cluster) promote(n *node) {
	c.stream = c.stream[:n.has]
	c.master, c.head = n, c.versions[n.m.Strings[head]]
	c.lost += len(c.chain) - 1 - int(c.head.Number)
	c.chain = c.chain[:c.head.Number+1]
	c.spans = append(c.spans, span{c.w.now, c.head})
	if len(c.replicas) == 0 && c.w.replicas > 0 {
		c.replicas = append(c.replicas, c.replica(n)) // a node that was added in place of the dead one
	}
	for _, r := range c.replicas {
		r.connected = true
		c.replicate(r)
	}
	for _, m := range c.w.members {
		m.mourn()
	}
}

// has reports whether the version is in the history of the present one.
func (c *cluster) has(v *version) bool {
	return int(v.Number) < len(c.chain) && c.chain[v.Number] == v
}

// connection is that of a server to the engine.
type connection struct{ of *member }

func (l connection) Eval(_ context.Context, script string, keys, args []string) (any, error) {
	return l.ask(script, func() any { return l.of.w.engine.run(script, keys, args) }, args)
}

// ask sends a request that is done by f.
func (l connection) ask(script string, f func() any, args []string) (any, error) {
	m, w := l.of, l.of.w
	p, c, sent := w.running, w.engine, w.now
	if records.ScriptName(script) == "commit" {
		c.sent[args[1]] = p.writes
	}
	fails := func(after time.Duration, err *engine.Error) (any, error) {
		m.fault(sent, max(w.now, sent+after))
		p.sleep(sent + after - w.now)
		return nil, err
	}
	silent := &engine.Error{Reason: engine.Timeout}
	fate, there, back := m.fate(), m.trip(), m.trip()
	switch {
	case m.cut(): // a half of all is refused at once
		if w.rng.IntN(2) == 0 {
			return fails(there, &engine.Error{Reason: engine.Refused, NotDone: true})
		}
		return fails(requestTime, silent)
	case fate == refused:
		return fails(there, &engine.Error{Reason: engine.Starting, NotDone: true})
	case fate == lost:
		return fails(requestTime, silent)
	case fate == delayed:
		term := c.term
		w.after(there+w.upTo(5*time.Second), func() {
			if c.term == term && c.master != nil {
				f()
			}
		})
		return fails(requestTime, silent)
	case fate == done:
		m.fault(sent, sent+requestTime)
	}
	p.sleep(there)
	term := c.term
	if c.master == nil {
		return fails(there+back, &engine.Error{Reason: engine.Refused, NotDone: true})
	}
	reply := f()
	p.sleep(back)
	switch {
	case fate == done || m.cut():
		return fails(requestTime, silent)
	case c.term != term:
		return fails(there+back, &engine.Error{Reason: engine.Broken})
	}
	return reply, nil
}

// Confirm waits until a connected replica has what the script has written.
func (l connection) Confirm(_ context.Context, script string, keys, args []string, d time.Duration) (is engine.Confirmed, err error) {
	w, position, term := l.of.w, 0, 0
	is.Reply, err = l.ask(script, func() any {
		reply := w.engine.run(script, keys, args)
		position, term = len(w.engine.stream), w.engine.term
		return reply
	}, args)
	if err != nil {
		return engine.Confirmed{}, err
	}
	for end := w.now + d; ; w.running.sleep(5 * time.Millisecond) {
		if w.engine.term != term {
			return engine.Confirmed{}, &engine.Error{Reason: engine.Broken}
		}
		is.Replicas, is.Have = 0, 0
		for _, r := range w.engine.replicas {
			if r.connected {
				is.Replicas++
			}
			if r.connected && r.has >= position {
				is.Have++
			}
		}
		if is.Replicas == 0 || is.Have > 0 || w.now >= end {
			break
		}
	}
	if made := w.running.writes.made; made != nil {
		made.confirmed = is.Have > 0
	}
	return is, nil
}

// Listen is not called: the cloud tells servers of changes.
func (connection) Listen(context.Context, string, func(err error)) {
	panic("no virtual time passes here")
}

// latest returns the instant until which the master had the version of text, and false if it never had.
func (c *cluster) latest(text string) (until time.Duration, had bool) {
	until = c.w.now
	for i := len(c.spans) - 1; i >= 0; i-- {
		if c.spans[i].version == c.versions[text] {
			return until, true
		}
		until = c.spans[i].from
	}
	return 0, false
}

// since calls yield with the versions that the master had at the instant or later, the latest first, until it returns true.
// The result is whether it has.
func (c *cluster) since(from time.Duration, yield func(v *version) bool) bool {
	for i := len(c.spans) - 1; i >= 0; i-- {
		if yield(c.spans[i].version) {
			return true
		}
		if c.spans[i].from <= from {
			break
		}
	}
	return false
}
