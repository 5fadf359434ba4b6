package replication

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/transport"
)

// Source is the sending side of a node, whatever the node itself is. Any goroutine may call
// it. Only Write is to be called by one at a time, which is also to be the one that calls
// Begin and Promote, or to be kept from writing meanwhile.
type Source struct {
	o      SourceOptions
	common common

	mu      sync.Mutex // guards what follows; the log's locks are taken before it
	history History
	frames  frames // of the stream
	backlog *Backlog
	room    int64 // the size of the backlog, with what was added for a long frame
	senders map[int64]*sender
	// retained says that the backlog is kept whether there are replicas or not.
	retained bool
	// emptySince is since when there has been no replica, by the stopwatch.
	emptySince time.Duration
	timer      clock.Timer // calls tick if ticking
	closed     bool

	ticking       atomic.Bool  // changed with mu held
	redisReplicas atomic.Int32 // how many of senders have an encoder; changed with mu held

	full, partial, refused atomic.Int64 // answers to PSYNC
}

// NewSource returns a source that has no history: [Source.Begin] comes first.
func NewSource(o SourceOptions) *Source {
	s := &Source{o: o, senders: map[int64]*sender{}}
	if s.o.Reached == nil {
		s.o.Reached = func() uint64 { return 0 }
	}
	s.common.waker, s.common.ackTable = &waker{after: o.After}, newAckTable()
	s.common.reached, s.common.stopwatch = s.o.Reached, o.Stopwatch
	return s
}

// Why connections of replicas are closed.
var (
	errHistory = errors.New("another history began")
	errPromote = errors.New("the node was promoted: its replicas are to ask for the new history")
	errClosed  = errors.New("the source is closed")
)

// Begin begins a history at offset, where a frame begins. Replicas of an earlier one lose
// their connections, and the backlog is dropped.
func (s *Source) Begin(h History, offset uint64) {
	s.mu.Lock()
	s.drop(errHistory)
	s.history, s.frames, s.backlog = h, frames{begin: offset, end: offset}, nil
	if s.retained && !s.closed {
		s.openBacklog(offset)
	}
	s.mu.Unlock()
	s.common.ackTable.expire(never) // offsets mean something else now
}

// never is later than the stopwatch ever shows.
const never = time.Duration(1<<63 - 1)

// Promote makes newID the id of the history from the present offset on, where a frame must
// begin. Replicas lose their connections, to come back and learn of it, and go on from the
// backlog.
func (s *Source) Promote(newID string) {
	s.mu.Lock()
	s.history = History{ID: newID, ID2: s.history.ID, Offset2: int64(s.frames.end) + 1}
	s.drop(errPromote)
	s.mu.Unlock()
}

// Retain says whether the backlog is kept even if there is no replica, as a node does that
// follows another: after a promotion, others may go on from it.
func (s *Source) Retain(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retained, s.emptySince = on, s.o.Stopwatch()
	if on && s.backlog == nil && !s.closed {
		s.openBacklog(s.frames.end)
	}
	s.arm()
}

// Write appends the next bytes of the stream, which are copied. It waits for nobody. It is
// called once for each write of the log, with a lock of the log held, so replicas that have
// been sent everything are woken somewhat later: see [linger].
func (s *Source) Write(piece []byte) {
	s.mu.Lock()
	longest := s.frames.add(piece)
	if s.backlog != nil {
		if len(s.senders) > 0 {
			s.makeRoom(longest)
		}
		s.backlog.Write(piece)
	}
	s.mu.Unlock()
	s.common.waker.written(s.common.ackTable.urgent.Load())
}

// openBacklog makes a backlog that begins at offset. mu must be held.
func (s *Source) openBacklog(offset uint64) {
	s.room = s.o.BacklogSize()
	s.backlog = NewBacklog(s.room, offset)
}

// makeRoom makes the backlog larger for a frame that it is about to get. mu must be held.
func (s *Source) makeRoom(frame int) {
	if want := roomFor(s.room, frame); want != s.room {
		s.room = want
		s.backlog.Resize(want)
	}
}

// Offset is where the stream has got to.
func (s *Source) Offset() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames.end
}

// History is the present one.
func (s *Source) History() History {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history
}

// BacklogState is what INFO shows of the backlog: the offset of its first byte and how many
// bytes there are. It is not active if there is none.
func (s *Source) BacklogState() (active bool, first, length uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backlog == nil {
		return false, 0, 0
	}
	first = s.backlog.First()
	return true, first, s.frames.end - first
}

// PSync answers a PSYNC of a replica that has [protocol.CapaCell1]. The pump is nil if the
// reply refuses it. The replica may go on where it was if it knows the history, by either of
// its ids, and the backlog reaches back to the first byte it lacks. Otherwise it is sent
// everything. Whether the state of this node is whole, and what Failover asks for, is for
// the caller to see to before.
func (s *Source) PSync(c protocol.PSync) (reply []byte, p transport.Pump) {
	s.mu.Lock()
	reply, r := s.answer(c)
	s.mu.Unlock()
	if r == nil {
		return reply, nil
	}
	s.o.Log.Info("a replica synchronizes", "addr", c.Addr, "partial", r.online.Load(), "offset", r.position.Load())
	return reply, r
}

// answer is Sync. mu must be held.
func (s *Source) answer(c protocol.PSync) (reply []byte, r *sender) {
	switch {
	case s.closed || s.history.ID == "":
		return []byte("-NOMASTERLINK Can't SYNC while this node has no history\r\n"), nil
	case s.senders[c.Client] != nil:
		return []byte("-ERR This connection is that of a replica already\r\n"), nil
	}
	from, goesOn := s.resumes(c)
	if !goesOn && c.ReplID != "?" {
		s.refused.Add(1)
	}
	if !goesOn {
		from = s.frames.begin
	}
	if r = s.addSender(c, from, goesOn); r == nil {
		return []byte("-NOMASTERLINK Can't SYNC while a large record is being written\r\n"), nil
	}
	if goesOn {
		s.partial.Add(1)
		r.online.Store(true)
		return fmt.Appendf(nil, "+CONTINUE %s%s %s\r\n", s.history.ID, s.dataSet(c), ourCapa), r
	}
	s.full.Add(1)
	r.sync = newFullSync(s.o.Keyspace, from)
	return fmt.Appendf(nil, "+FULLRESYNC %s %d%s %s\r\n", s.history.ID, from, s.dataSet(c), ourCapa), r
}

// dataSet is the word of the answer that names the data set, behind a blank. A replica that does
// not say which one it has does not know such a word. mu must be held.
func (s *Source) dataSet(c protocol.PSync) string {
	if c.DataSet == "" || s.o.DataSet == nil {
		return ""
	}
	if id := s.o.DataSet(c.DataSet); id != "" {
		return " " + id
	}
	return ""
}

// addSender adds a replica that is sent the stream from there on, and has a whole state up to there
// or none. It adds none while a frame is being written whose beginning is not in the
// backlog. mu must be held.
func (s *Source) addSender(c protocol.PSync, from uint64, whole bool) *sender {
	if s.backlog == nil && !s.frames.whole() || s.backlog != nil && from < s.backlog.First() {
		return nil
	}
	if s.backlog == nil {
		s.openBacklog(from)
	}
	r := &sender{sleeper: sleeper{peer: c.Peer, backlog: s.backlog}, common: &s.common, call: c, at: from}
	r.leave = func() { s.left(r) }
	r.position.Store(from)
	now := s.o.Stopwatch()
	r.active.Store(int64(now))
	s.senders[c.Client] = r
	s.common.ackTable.open(c.Client, whole, from, now)
	s.arm()
	return r
}

// resumes returns the offset from which a replica is sent the stream only. mu must be held.
func (s *Source) resumes(c protocol.PSync) (from uint64, ok bool) {
	if c.ReplID == "?" {
		return 0, false
	}
	known := c.ReplID == s.history.ID || s.history.ID2 != "" && c.ReplID == s.history.ID2 && c.Offset <= s.history.Offset2
	if known && c.Offset >= 1 && s.backlog != nil {
		from = uint64(c.Offset - 1)
		ok = from >= s.backlog.First() && from <= s.backlog.End()
	}
	return from, ok
}

// Resumes reports whether the answer to a PSYNC would be a partial resynchronization.
func (s *Source) Resumes(c protocol.PSync) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.resumes(c)
	return ok
}

// drop closes the connections of all replicas. mu must be held.
func (s *Source) drop(why error) {
	for _, r := range s.senders {
		s.remove(r)
		r.end(why)
	}
}

// DropReplicas closes the connections of all replicas.
func (s *Source) DropReplicas(why error) {
	s.mu.Lock()
	s.drop(why)
	s.mu.Unlock()
}

// remove forgets a replica. mu must be held.
func (s *Source) remove(r *sender) {
	delete(s.senders, r.call.Client)
	if r.encoder != nil {
		s.redisReplicas.Add(-1)
	}
	s.common.ackTable.close(r.call.Client)
	s.common.waker.forget(&r.sleeper)
	if len(s.senders) == 0 {
		s.emptySince = s.o.Stopwatch()
	}
}

// left is called when the connection of a replica is gone.
func (s *Source) left(r *sender) {
	s.mu.Lock()
	known := s.senders[r.call.Client] == r
	if known {
		s.remove(r)
	}
	s.mu.Unlock()
	s.common.waker.forget(&r.sleeper) // it may have gone to sleep after remove
	if known {
		s.o.Log.Info("a replica is gone", "addr", r.call.Addr)
	}
}

// tickEvery is how often a source looks after what depends on time.
const tickEvery = time.Second

// arm has tick called, if there is something to look after. mu must be held.
func (s *Source) arm() {
	if !s.ticking.Load() && !s.closed && (s.backlog != nil || !s.common.ackTable.idle()) {
		s.ticking.Store(true)
		s.timer = s.o.After(tickEvery, s.tick)
	}
}

// tick greets replicas that have been sent nothing for long, gives up those that were overtaken
// and a backlog that nobody needs, and has those ask again who wait. It is not its business
// to give up replicas that are silent: sessions do so (repl-timeout).
func (s *Source) tick() {
	now := s.o.Stopwatch()
	s.mu.Lock()
	s.ticking.Store(false)
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.greet(now)
	var overtaken []string
	if s.backlog != nil {
		overtaken = s.expel()
		s.giveBack()
	}
	ttl := s.o.BacklogTTL()
	freed := s.backlog != nil && len(s.senders) == 0 && !s.retained && ttl > 0 && now-s.emptySince >= ttl
	if freed {
		s.backlog = nil
	}
	s.mu.Unlock()
	for _, addr := range overtaken {
		s.o.Log.Warn("a replica was overtaken by the backlog (repl-backlog-size)", "addr", addr)
	}
	s.common.ackTable.expire(now - patience)
	s.mu.Lock()
	s.arm()
	s.mu.Unlock()
	if freed && s.o.Freed != nil {
		s.o.Freed()
	}
}

// greet tells the replicas that we are there to which nothing was sent for long. mu must be
// held.
func (s *Source) greet(now time.Duration) {
	ping := s.o.PingPeriod()
	for _, r := range s.senders {
		switch {
		case now-time.Duration(r.active.Load()) < ping:
		case r.encoder != nil:
			r.encoder.Ping()
		default:
			r.alive.Store(true)
			r.peer.Wake()
		}
	}
}

// expel closes the connections of replicas that the backlog has overtaken. A connection that is
// filled finds that out by itself, but that of a replica that reads nothing never is. It returns
// their addresses. mu must be held.
func (s *Source) expel() (addrs []string) {
	first := s.backlog.First()
	for _, r := range s.senders {
		if r.position.Load() < first {
			addrs = append(addrs, r.call.Addr)
			s.remove(r)
			r.end(errOvertaken)
		}
	}
	return addrs
}

// giveBack makes the backlog as small again as what replicas lack allows. mu must be held.
func (s *Source) giveBack() {
	lacks := uint64(0)
	for _, r := range s.senders {
		lacks = max(lacks, s.frames.end-r.position.Load())
	}
	s.room = roomAfter(s.room, s.o.BacklogSize(), lacks)
	s.backlog.Resize(s.room)
}

// Counts are how replicas were served since the start.
func (s *Source) Counts() protocol.Counts {
	return protocol.Counts{
		SyncFull: s.full.Load(), SyncPartialOK: s.partial.Load(), SyncPartialErr: s.refused.Load(),
		BytesOut: s.common.sent.Load(),
	}
}

// Close ends the connections of replicas and all timers. Everything that is called later
// does nothing of note.
func (s *Source) Close() {
	s.mu.Lock()
	s.closed = true
	s.drop(errClosed)
	s.backlog = nil
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.common.waker.close()
	s.common.ackTable.expire(never)
}
