package tracking

import (
	"slices"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/resp"
)

const (
	// tellInline is how many clients are told on a loop. More are told in the background.
	tellInline = 256
	// tellWork is how many units of turnWork it is to tell one: a lock, a copy and a wake.
	tellWork = 8
)

// writer is the id of the client whose command runs, or is served.
func (o *observer) writer() int64 {
	w := o.worker
	switch {
	case w == nil:
		return 0
	case w.Served != 0:
		return w.Served
	case w.Call.Client != nil:
		return w.Call.Client.ID
	}
	return w.Actor
}

// Changed takes note of a key that has changed, or is gone by time. The key is locked.
func (o *observer) Changed(key []byte, expired bool) {
	v := o.invalidator
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
	if expired && o.reading != nil && o.reading.justRead(r) {
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
			o.invalidator.reads.merge(first.who, c.who)
			return
		}
		o.at[c.who.key] = len(o.found)
	}
	o.found = append(o.found, c)
}

// Flushed takes note that a whole database is gone: as in Redis every tracking client
// forgets everything.
func (o *observer) Flushed() {
	v := o.invalidator
	if v.clients.Load() > 0 {
		v.reads.clear()
		o.flushed = true
	}
}

// Unlocked tells the clients.
func (o *observer) Unlocked() {
	v := o.invalidator
	if o.flushed || len(o.groups) > 0 {
		v.leaveToTell(o.groups, o.flushed)
		clear(o.groups)
		if o.groups = o.groups[:0]; cap(o.groups) > command.KeptPosting {
			o.groups = nil
		}
		o.flushed = false
	}
	o.mark = 0
	if len(o.found) > 0 {
		told := v.tell(o.found)
		if o.worker != nil {
			o.worker.Work += told * tellWork
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
func (v *invalidator) tell(changes []change) (told int) {
	for i, c := range changes {
		n := c.who.len()
		if told+n > tellInline {
			v.mu.Lock()
			v.long = append(v.long, changes[i:]...)
			v.wake()
			v.mu.Unlock()
			break
		}
		v.tellReaders(c)
		told += n
	}
	return told
}

// leaveToTell has groups told what is pending, and all clients of a flush.
func (v *invalidator) leaveToTell(groups []*prefixGroup, flushed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.flushed = v.flushed || flushed
	for _, g := range groups {
		if !g.queued { // else it will be looked at from now on
			g.queued = true
			v.groups = append(v.groups, g)
		}
	}
	v.wake()
}

// wake has a goroutine tell what is left to be told. mu is locked.
func (v *invalidator) wake() {
	v.issued.Add(1)
	if !v.running {
		v.running = true
		v.server.Host.Spawn(v.serve)
	}
}

// serve tells what is left to be told until there is nothing. What changes
// meanwhile under one prefix is gathered, each key once.
func (v *invalidator) serve() {
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
			v.tellAll()
		}
		for _, c := range long {
			v.tellReaders(c)
		}
		for _, g := range groups {
			v.tellGroup(g)
		}
		more := shrinks && v.shrinkReads()
		v.hasTold(upTo)
		if more {
			v.leaveToShrink()
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
	for cl := range waiting {
		cl.Peer.Wake()
	}
}

// awaitsNews reports whether a client has to wait before it runs what has arrived: until it
// has been told what was left to be told by then. So a client that asks for something after
// somebody has had the reply to a write is told of the write before it is answered, as by
// Redis, which tells all before any reply leaves. The client is woken.
func (v *invalidator) awaitsNews(cl *command.Client) bool {
	state := command.ClientState[trackingState](cl, v.slot)
	if state.newsUpTo == 0 {
		state.newsUpTo = v.issued.Load()
	}
	if v.told.Load() >= state.newsUpTo {
		state.newsUpTo = 0
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.told.Load() >= state.newsUpTo {
		state.newsUpTo = 0
		return false
	}
	if v.waiting == nil {
		v.waiting = make(map[*command.Client]struct{})
	}
	v.waiting[cl] = struct{}{}
	return true
}

// tellReaders tells those who had read a key that it has changed.
func (v *invalidator) tellReaders(c change) {
	n := notice{keys: []string{c.who.key}}
	for _, id := range c.who.ids {
		cl := v.server.Host.Client(id)
		if cl == nil {
			continue
		}
		if t := v.tracking(cl); t != nil && !t.broadcast && !(t.noLoop && id == c.writer) {
			v.send(&n, cl, t)
		}
	}
	v.finish(&n)
	v.reads.forget(c.who)
}

// tellAll tells every tracking client to forget everything.
func (v *invalidator) tellAll() {
	n := notice{}
	for _, cl := range v.server.Host.Clients() {
		if t := v.tracking(cl); t != nil {
			v.send(&n, cl, t)
		}
	}
	v.finish(&n)
}

// A message of BCAST mode names so many keys at most, of so many bytes together.
const (
	groupKeys  = 512
	groupBytes = 16 << 10
)

// tellGroup tells those who listen to a prefix what is pending.
func (v *invalidator) tellGroup(g *prefixGroup) {
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
			cl := v.server.Host.Client(id)
			if cl == nil {
				continue
			}
			t := v.tracking(cl)
			if t == nil || !t.broadcast {
				continue
			}
			if _, wrote := writers[id]; !wrote || !t.noLoop {
				v.send(&n, cl, t)
				continue
			}
			others := slices.DeleteFunc(slices.Clone(part), func(key string) bool { return pending[key] == id })
			if len(others) > 0 {
				own := notice{keys: others}
				v.send(&own, cl, t)
				v.finish(&own)
			}
		}
		v.finish(&n)
	}
	v.memory.Add(-int64(cost))
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
func (v *invalidator) send(n *notice, cl *command.Client, t *tracking) {
	to, host := cl, v.server.Host
	if t.redirect != 0 {
		if to = host.Client(t.redirect); to == nil {
			v.redirectBroken(cl, t.redirect)
			return
		}
	}
	i := int(to.Protocol.Load() - 2)
	if i == 0 && (t.redirect == 0 || !to.Subscribed()) {
		return
	}
	if len(n.frames[i].Buf) == 0 {
		n.encode(i)
	}
	next, memory := host.Post(to, n.frames[i].Buf, n.shared[i])
	n.memory += memory
	host.Follow(to, next)
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

// finish counts what a notice has taken.
func (v *invalidator) finish(n *notice) {
	for _, f := range n.shared {
		if f != nil && f.Refs.Add(-1) == 0 {
			n.memory -= len(f.Bytes)
		}
	}
	if n.memory != 0 {
		v.server.Host.Posted(n.memory)
	}
}

// redirectBroken notes that the client which cl redirects to is gone, and tells cl.
func (v *invalidator) redirectBroken(cl *command.Client, id int64) {
	v.of(cl).lostRedirect.Store(true)
	if cl.Protocol.Load() != 3 {
		return
	}
	w := resp.Writer{Proto: 3}
	w.Push(2)
	w.BulkString("tracking-redir-broken")
	w.Int(id)
	v.server.Host.Push(cl, w.Buf)
}

// shrinkSlice is how many entries leave the table at a time once its bound has been
// lowered. Clients that track wait for a slice at most.
const shrinkSlice = 1 << 10

// leaveToShrink has the table brought within its bound in the background, if it is not.
func (v *invalidator) leaveToShrink() {
	if !v.reads.beyond(v.server.Limits().TrackingKeys) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shrinks = true
	v.wake()
}

// shrinkReads takes a slice out of the table, and reports whether it may have to go on.
func (v *invalidator) shrinkReads() (more bool) {
	t := &v.reads
	for range shrinkSlice {
		if !t.beyond(v.server.Limits().TrackingKeys) {
			return false
		}
		r := t.draw(0)
		if r == nil {
			return false
		}
		v.tellReaders(change{who: r})
	}
	return true
}
