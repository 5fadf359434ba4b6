package tracking

import (
	"slices"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

const (
	// tellInline is the maximum number of clients that the goroutine which unlocks shards notifies
	// itself, at one unlock. If there are more, the goroutine that runs serve notifies the rest.
	tellInline = 256
	// tellWork is the work of notifying one client, in the units of command.Worker.Work: a lock, a
	// copy and a wake.
	tellWork = 8
)

// writer returns the ID of the client that makes the present change: the waiting client that takes
// elements, the client whose command runs, or the client for which the worker works; 0 if there is
// none.
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

// Changed implements [env.Observer]. It records that key has changed or has expired. The shard of
// key is locked.
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
		r.drop(o.writer()) // the reply tells the client of this worker that the key has expired
	}
	o.note(change{r, writer})
}

// note adds c to the recorded changes. Once 64 changes are recorded, note merges changes of the
// same key into one, because a script may read and change a key repeatedly.
func (o *observer) note(c change) {
	const few = 64
	if len(o.found) >= few {
		if o.at == nil {
			o.at = make(map[string]int)
			for i, c := range o.found {
				o.at[c.readers.key] = i
			}
		}
		if i, is := o.at[c.readers.key]; is {
			first := &o.found[i]
			if first.writer != c.writer {
				first.writer = 0
			}
			o.invalidator.reads.merge(first.readers, c.readers)
			return
		}
		o.at[c.readers.key] = len(o.found)
	}
	o.found = append(o.found, c)
}

// Flushed implements [env.Observer]. It records that a database was emptied. As in Redis, every
// tracking client then drops its whole cache.
func (o *observer) Flushed() {
	v := o.invalidator
	if v.clients.Load() > 0 {
		v.reads.clear()
		o.flushed = true
	}
}

// Unlocked implements [env.Observer]. It sends the invalidations for the recorded changes, or has
// serve send them.
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
		told := v.notify(o.found)
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

// notify sends invalidations to the readers of the changed keys. Before the number of notified
// clients would exceed tellInline, it leaves the remaining changes to serve. told is the number of
// clients that it has notified itself.
func (v *invalidator) notify(changes []change) (told int) {
	for i, c := range changes {
		n := c.readers.len()
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

// leaveToTell makes serve send the pending keys of groups and, if flushed is true, an invalidation
// of all keys to all tracking clients.
func (v *invalidator) leaveToTell(groups []*prefixGroup, flushed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.flushed = v.flushed || flushed
	for _, g := range groups {
		if !g.queued { // serve sends the keys of a queued group anyway
			g.queued = true
			v.groups = append(v.groups, g)
		}
	}
	v.wake()
}

// wake counts a request to serve, and starts a goroutine that runs serve if there is none. v.mu is
// held.
func (v *invalidator) wake() {
	v.issued.Add(1)
	if !v.running {
		v.running = true
		v.server.Host.Work.Spawn(v.serve)
	}
}

// serve sends all pending invalidations and evicts the entries that are to be evicted. It returns
// when nothing is left to do. Keys with the same prefix that change meanwhile are gathered, each
// key once.
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
		v.delivered(upTo)
		if more {
			v.leaveToShrink()
		}
	}
}

// delivered records that the first upTo requests are completed, and wakes the clients that wait for
// them.
func (v *invalidator) delivered(upTo uint64) {
	v.mu.Lock()
	v.told.Store(upTo)
	waiting := v.waiting
	v.waiting = nil
	v.mu.Unlock()
	for cl := range waiting {
		cl.Peer.Wake()
	}
}

// awaitsNews is the Awaits hook. It reports whether cl has to wait before it runs its next
// commands. The first call for these commands notes how many requests to serve were issued; cl
// waits until serve has completed as many, and then delivered wakes cl. So a client that sends a
// command after another client got the reply to a write gets the invalidation before the reply to
// its command. Redis has the same order, because it sends all invalidations before any reply.
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

// tellReaders sends an invalidation of the changed key to the clients that had read it, and forgets
// the entry.
func (v *invalidator) tellReaders(c change) {
	n := notice{keys: []string{c.readers.key}}
	for _, id := range c.readers.ids {
		cl := v.server.Host.Registry.Client(id)
		if cl == nil {
			continue
		}
		if t := v.tracking(cl); t != nil && !t.broadcast && !(t.noLoop && id == c.writer) {
			v.send(&n, cl, t)
		}
	}
	v.finish(&n)
	v.reads.forget(c.readers)
}

// tellAll sends an invalidation of all keys to every tracking client.
func (v *invalidator) tellAll() {
	n := notice{}
	for _, cl := range v.server.Host.Registry.Clients() {
		if t := v.tracking(cl); t != nil {
			v.send(&n, cl, t)
		}
	}
	v.finish(&n)
}

// groupKeys and groupBytes bound one message in BCAST mode: the number of its keys, and the sum of
// their lengths in bytes. A single longer key is sent nevertheless.
const (
	groupKeys  = 512
	groupBytes = 16 << 10
)

// tellGroup sends the pending keys of g to the clients in g. A client with NOLOOP does not get the
// keys that it has changed itself.
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
			cl := v.server.Host.Registry.Client(id)
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

// parts returns an iterator over consecutive parts of keys, each of which fits into one message.
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

// notice is one invalidation message, about keys, or about all keys if keys is nil. It is encoded
// once for each version of the protocol, and the receivers of a long message share its bytes.
type notice struct {
	keys   []string
	frames [2]resp.Writer
	shared [2]*command.SharedFrame
	memory int // bytes that the message takes in output buffers
}

// invalidateChannel is the channel on which a RESP2 client receives invalidations that other
// clients redirect to it.
const invalidateChannel = "__redis__:invalidate"

// send posts n to the tracking client cl with the options t, or to the client to which cl redirects
// its messages. If that client has disconnected, send does not post n, and calls redirectBroken. As
// in Redis, a RESP2 client gets no message of its own tracking, and a redirected one only if it has
// a subscription.
func (v *invalidator) send(n *notice, cl *command.Client, t *tracking) {
	to, host := cl, v.server.Host
	if t.redirect != 0 {
		if to = host.Registry.Client(t.redirect); to == nil {
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
	next, memory := host.Messages.Post(to, n.frames[i].Buf, n.shared[i])
	n.memory += memory
	host.Messages.Follow(to, next)
}

// encode writes the message for RESP2 (i is 0) or RESP3 (i is 1). A long message becomes a shared
// frame.
func (n *notice) encode(i int) {
	w := &n.frames[i]
	w.Proto = 2 + i
	if i == 0 {
		w.Push(3) // the message is an array in RESP2
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

// finish must be called after n was sent to all its receivers. It releases the references of n to
// the shared frames, and adds the memory of the posted messages to the statistics.
func (v *invalidator) finish(n *notice) {
	for _, f := range n.shared {
		if f != nil && f.Refs.Add(-1) == 0 {
			n.memory -= len(f.Bytes)
		}
	}
	if n.memory != 0 {
		v.server.Host.Messages.Posted(n.memory)
	}
}

// redirectBroken records that the client id, to which cl redirects its messages, has disconnected.
// If cl uses RESP3, it also sends cl a message about that.
func (v *invalidator) redirectBroken(cl *command.Client, id int64) {
	v.of(cl).lostRedirect.Store(true)
	if cl.Protocol.Load() != 3 {
		return
	}
	w := resp.Writer{Proto: 3}
	w.Push(2)
	w.BulkString("tracking-redir-broken")
	w.Int(id)
	v.server.Host.Messages.Push(cl, w.Buf)
}

// shrinkSlice is the number of entries that serve evicts at a time after tracking-table-max-keys
// was lowered. It is small, because clients that wait for serve wait for such an eviction, too: see
// awaitsNews.
const shrinkSlice = 1 << 10

// leaveToShrink makes serve evict entries if the table has more than tracking-table-max-keys.
func (v *invalidator) leaveToShrink() {
	if !v.reads.beyond(v.server.Limits().TrackingKeys) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shrinks = true
	v.wake()
}

// shrinkReads evicts up to shrinkSlice entries, and reports whether more may have to be evicted.
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
		v.tellReaders(change{readers: r})
	}
	return true
}
