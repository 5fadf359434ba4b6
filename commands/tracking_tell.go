package commands

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

// invalidator tells clients what they have to forget.
type invalidator struct {
	clients  atomic.Int64 // that track
	reads    readTable
	prefixes prefixTree
	memory   atomic.Int64 // of prefixes and of what is pending for them

	marks atomic.Uint64 // the latest mark of an observer

	mu      sync.Mutex
	running bool           // guarded by mu: a goroutine serves what follows
	long    []change       // guarded by mu: changes with many readers
	groups  []*prefixGroup // guarded by mu: those with something pending
	flushed bool           // guarded by mu
	shrinks bool           // guarded by mu: the table is to be brought within its bound

	// issued counts what has been left to be told, and told is as much of it as has been.
	// Both change with mu held.
	issued, told atomic.Uint64
	waiting      map[*Session]struct{} // guarded by mu: woken when told changes
}

// size is how many bytes the invalidation table and the prefixes take.
func (v *invalidator) size() int64 { return v.reads.memory.Load() + v.memory.Load() }

// change is a key that has changed, those who had read it, and who changed it, 0 if
// that was nobody.
type change struct {
	who    *readers
	writer int64
}

const (
	// tellInline is how many clients are told on a loop. More are told beside the loops.
	tellInline = 256
	// tellWork is how many units of turnWork it is to tell one: a lock, a copy and a wake.
	tellWork = 8
)

// observer gathers what one store changes until it holds no lock. The order is what
// makes a stale value impossible: a read is registered before it looks, a write takes
// the registrations while the key is locked, and a message that is left with a client
// while it runs a command leaves behind the reply.
type observer struct {
	engine  *Engine
	lane    *Lane // nil for the sweep
	actor   int64 // for whom a lane beside the loops works
	served  int64 // who takes elements that somebody else has brought; 0 while nobody does
	found   []change
	at      map[string]int // where in found a key is, once there are more than few
	groups  []*prefixGroup
	mark    uint64 // given to groups until the next release, 0 if to none
	flushed bool
}

// writer is the id of the client whose command runs, or is served.
func (o *observer) writer() int64 {
	if o.served != 0 {
		return o.served
	}
	if o.lane != nil && o.lane.ctx.Client != nil {
		return o.lane.ctx.Client.Id
	}
	return o.actor
}

// Changed takes note of a key that has changed, or is gone by time. The key is locked.
func (o *observer) Changed(key []byte, expired bool) {
	v := &o.engine.invalidator
	if v.clients.Load() == 0 {
		return
	}
	writer := o.writer()
	if expired {
		writer = 0
	}
	if v.prefixes.count.Load() > 0 {
		if o.mark == 0 {
			o.mark = v.marks.Add(1)
		}
		var memory int64
		o.groups, memory = v.prefixes.changed(o.groups, key, writer, o.mark)
		v.memory.Add(memory)
	}
	r := v.reads.take(key)
	if r == nil {
		return
	}
	if expired && o.lane != nil && o.lane.reading.justRead(r) {
		r.drop(o.writer()) // it is about to be told by the reply
	}
	o.note(change{r, writer})
}

// note gathers a change. A script may read a key and change it again and again: from some
// on all changes of a key are one.
func (o *observer) note(c change) {
	const few = 64
	if len(o.found) >= few {
		if o.at == nil {
			o.at = make(map[string]int)
			for i, c := range o.found {
				o.at[c.who.key] = i
			}
		}
		if i, is := o.at[c.who.key]; is {
			first := &o.found[i]
			if first.writer != c.writer {
				first.writer = 0
			}
			o.engine.invalidator.reads.merge(first.who, c.who)
			return
		}
		o.at[c.who.key] = len(o.found)
	}
	o.found = append(o.found, c)
}

// Flushed takes note that a whole database is gone: as in Redis every tracking client
// forgets everything.
func (o *observer) Flushed() {
	v := &o.engine.invalidator
	if v.clients.Load() > 0 {
		v.reads.clear()
		o.flushed = true
	}
}

// Released tells the clients.
func (o *observer) Released() {
	e := o.engine
	if o.flushed || len(o.groups) > 0 {
		e.leaveToTell(o.groups, o.flushed)
		clear(o.groups)
		if o.groups = o.groups[:0]; cap(o.groups) > command.KeptPosting {
			o.groups = nil
		}
		o.flushed = false
	}
	o.mark = 0
	if len(o.found) > 0 {
		told := e.tell(o.found)
		if o.lane != nil {
			o.lane.Work += told * tellWork
		}
		o.at = nil
		clear(o.found)
		if o.found = o.found[:0]; cap(o.found) > command.KeptPosting {
			o.found = nil
		}
	}
}

// tell sends what has changed to who had read it, or has that done if they are many. It
// returns how many it has told itself.
func (e *Engine) tell(changes []change) (told int) {
	v := &e.invalidator
	for i, c := range changes {
		n := c.who.len()
		if told+n > tellInline {
			v.mu.Lock()
			v.long = append(v.long, changes[i:]...)
			e.wakeInvalidator()
			v.mu.Unlock()
			break
		}
		e.tellReaders(c)
		told += n
	}
	return told
}

// leaveToTell has groups told what is pending, and all clients of a flush.
func (e *Engine) leaveToTell(groups []*prefixGroup, flushed bool) {
	v := &e.invalidator
	v.mu.Lock()
	defer v.mu.Unlock()
	v.flushed = v.flushed || flushed
	for _, g := range groups {
		if !g.queued { // else it will be looked at from now on
			g.queued = true
			v.groups = append(v.groups, g)
		}
	}
	e.wakeInvalidator()
}

// wakeInvalidator has a goroutine tell what is left to be told. invalidator.mu is held.
func (e *Engine) wakeInvalidator() {
	v := &e.invalidator
	v.issued.Add(1)
	if !v.running {
		v.running = true
		e.Spawn(e.serveInvalidator)
	}
}

// serveInvalidator tells what is left to be told until there is nothing. What changes
// meanwhile under one prefix is gathered, each key once.
func (e *Engine) serveInvalidator() {
	v := &e.invalidator
	for {
		v.mu.Lock()
		long, groups, flushed, shrinks := v.long, v.groups, v.flushed, v.shrinks
		v.long, v.groups, v.flushed, v.shrinks = nil, nil, false, false
		if len(long) == 0 && len(groups) == 0 && !flushed && !shrinks {
			v.running = false
			v.mu.Unlock()
			return
		}
		for _, g := range groups {
			g.queued = false
		}
		upTo := v.issued.Load()
		v.mu.Unlock()
		if flushed {
			e.tellAll()
		}
		for _, c := range long {
			e.tellReaders(c)
		}
		for _, g := range groups {
			e.tellGroup(g)
		}
		more := shrinks && e.shrinkReads()
		v.hasTold(upTo)
		if more {
			e.leaveToShrink()
		}
	}
}

// hasTold notes that all is told that was left up to then, and wakes who waits for it.
func (v *invalidator) hasTold(upTo uint64) {
	v.mu.Lock()
	v.told.Store(upTo)
	waiting := v.waiting
	v.waiting = nil
	v.mu.Unlock()
	for s := range waiting {
		s.Peer.Wake()
	}
}

// awaitNews reports whether the session has to wait before it runs what has arrived: until
// it has been told what was left to be told by then. So a client that asks for something
// after somebody has had the reply to a write is told of the write before it is answered, as
// by Redis, which tells all before any reply leaves. The session is woken.
func (s *Session) awaitNews() bool {
	v := &s.engine.invalidator
	if s.newsUpTo == 0 {
		s.newsUpTo = v.issued.Load()
	}
	if v.told.Load() >= s.newsUpTo {
		s.newsUpTo = 0
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.told.Load() >= s.newsUpTo {
		s.newsUpTo = 0
		return false
	}
	if v.waiting == nil {
		v.waiting = make(map[*Session]struct{})
	}
	v.waiting[s] = struct{}{}
	return true
}

// tellReaders tells those who had read a key that it has changed.
func (e *Engine) tellReaders(c change) {
	n := notice{keys: []string{c.who.key}}
	c.who.each(func(id int64) {
		s := e.clients.get(id)
		if s == nil {
			return
		}
		if t := s.tracks.Load(); t != nil && !t.broadcast && !(t.noLoop && id == c.writer) {
			e.send(&n, s, t)
		}
	})
	n.end(e)
	e.invalidator.reads.forget(c.who)
}

// tellAll tells every tracking client to forget everything.
func (e *Engine) tellAll() {
	n := notice{}
	for _, s := range e.clients.list() {
		if t := s.tracks.Load(); t != nil {
			e.send(&n, s, t)
		}
	}
	n.end(e)
}

// A message of BCAST mode names so many keys at most, of so many bytes together.
const (
	groupKeys  = 512
	groupBytes = 16 << 10
)

// tellGroup tells those who listen to a prefix what is pending.
func (e *Engine) tellGroup(g *prefixGroup) {
	pending, members := g.take()
	keys, writers, cost := make([]string, 0, len(pending)), make(map[int64]struct{}), 0
	for key, writer := range pending {
		keys = append(keys, key)
		writers[writer] = struct{}{}
		cost += len(key) + pendingCost
	}
	slices.Sort(keys)
	for part := range parts(keys) {
		n := notice{keys: part}
		for _, id := range members {
			s := e.clients.get(id)
			if s == nil {
				continue
			}
			t := s.tracks.Load()
			if t == nil || !t.broadcast {
				continue
			}
			if _, wrote := writers[id]; !wrote || !t.noLoop {
				e.send(&n, s, t)
				continue
			}
			others := slices.DeleteFunc(slices.Clone(part), func(key string) bool { return pending[key] == id })
			if len(others) > 0 {
				own := notice{keys: others}
				e.send(&own, s, t)
				own.end(e)
			}
		}
		n.end(e)
	}
	e.invalidator.memory.Add(-int64(cost))
}

// parts divides keys into messages.
func parts(keys []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(keys) > 0 {
			n, size := 0, 0
			for n < len(keys) && n < groupKeys && (n == 0 || size+len(keys[n]) <= groupBytes) {
				size += len(keys[n])
				n++
			}
			if !yield(keys[:n]) {
				return
			}
			keys = keys[n:]
		}
	}
}

// notice is one message about keys, or about all of them if it names none. It is
// encoded once for each protocol, and a long one is shared by those who get it.
type notice struct {
	keys   []string
	frames [2]resp.Writer
	shared [2]*command.SharedFrame
	memory int // what it has taken in outboxes
}

// invalidateChannel is where a RESP2 client listens for those who redirect to it.
const invalidateChannel = "__redis__:invalidate"

// send leaves the notice with a tracking client, or with the one it redirects to. A
// client that neither speaks RESP3 nor listens cannot be told, as in Redis.
func (e *Engine) send(n *notice, s *Session, t *tracking) {
	to := s
	if t.redirect != 0 {
		if to = e.clients.get(t.redirect); to == nil {
			s.redirectBroken(t.redirect)
			return
		}
	}
	i := int(to.Protocol.Load() - 2)
	if i == 0 && (t.redirect == 0 || !to.subscriber()) {
		return
	}
	if len(n.frames[i].Buf) == 0 {
		n.encode(i)
	}
	next, memory := to.post(n.frames[i].Buf, n.shared[i])
	n.memory += memory
	to.follow(next)
}

func (n *notice) encode(i int) {
	w := &n.frames[i]
	w.Proto = 2 + i
	if i == 0 {
		w.Push(3) // an array there
		w.BulkString("message")
		w.BulkString(invalidateChannel)
	} else {
		w.Push(2)
		w.BulkString("invalidate")
	}
	if n.keys == nil {
		w.Null()
	} else {
		w.Array(len(n.keys))
		for _, key := range n.keys {
			w.BulkString(key)
		}
	}
	if len(w.Buf) >= command.SharedFrom {
		n.shared[i] = &command.SharedFrame{Bytes: w.Buf}
		n.shared[i].Refs.Store(1)
		n.memory += len(w.Buf)
	}
}

// end counts what the notice has taken.
func (n *notice) end(e *Engine) {
	for _, f := range n.shared {
		if f != nil && f.Refs.Add(-1) == 0 {
			n.memory -= len(f.Bytes)
		}
	}
	if n.memory != 0 {
		e.outbound.Add(int64(n.memory))
	}
}

// redirectBroken notes that the client which s redirects to is gone, and tells s.
func (s *Session) redirectBroken(id int64) {
	s.lostRedirect.Store(true)
	if s.Protocol.Load() != 3 {
		return
	}
	w := resp.Writer{Proto: 3}
	w.Push(2)
	w.BulkString("tracking-redir-broken")
	w.Int(id)
	s.Push(w.Buf)
}

// observe makes the observer of a lane.
func (e *Engine) observe(l *Lane) {
	l.observer = observer{engine: e, lane: l}
	l.Store.Observe(&l.observer)
}
