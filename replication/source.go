package replication

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/transport"
)

// Source is the sending side of a node, whether the node is a primary or a replica. Any goroutine
// may call its methods, except that calls of Write, Begin and Promote must not overlap.
type Source struct {
	o      SourceOptions
	common common

	mu      sync.Mutex // mu guards the fields below; locks of the log are taken before mu
	history History
	frames  frames // finds the boundaries of frames in the stream
	backlog *Backlog
	size    int64 // the size of the backlog in bytes, including what was added for a long frame
	senders map[int64]*sender
	// retained says that the backlog is kept without replicas for longer than BacklogTTL, and that it
	// is opened before there is a replica: see [Source.Retain].
	retained bool
	// emptySince is the stopwatch reading since which there has been no replica. It is valid if
	// there is none.
	emptySince time.Duration
	timer      clock.Timer // calls tick once a second; runs while ticking is true
	closed     bool

	ticking       atomic.Bool  // whether timer runs; changed with mu held
	redisReplicas atomic.Int32 // number of senders that have an encoder; changed with mu held

	full, partial, refused atomic.Int64 // numbers of answers to PSYNC
}

// NewSource returns a source without a history. The caller must call [Source.Begin] before other
// methods, and [Source.Close] at the end.
func NewSource(o SourceOptions) *Source {
	s := &Source{o: o, senders: map[int64]*sender{}}
	if s.o.Reached == nil {
		s.o.Reached = func() uint64 { return 0 }
	}
	s.common.waker, s.common.ackTable = &waker{after: o.After}, newAckTable()
	s.common.reached, s.common.stopwatch = s.o.Reached, o.Stopwatch
	return s
}

// These are the reasons to close the connections of replicas.
var (
	errHistory = errors.New("another history began")
	errPromote = errors.New("the node was promoted: its replicas are to ask for the new history")
	errClosed  = errors.New("the source is closed")
)

// Begin begins the history h at offset, which must be the beginning of a frame. The connections
// of replicas with an earlier history are closed, the backlog is discarded, and waiting peers are
// woken.
func (s *Source) Begin(h History, offset uint64) {
	s.mu.Lock()
	s.drop(errHistory)
	s.history, s.frames, s.backlog = h, frames{begin: offset, end: offset}, nil
	if s.retained && !s.closed {
		s.openBacklog(offset)
	}
	s.mu.Unlock()
	s.common.ackTable.expire(never) // the waiters wait for offsets of the old history
}

// never is later than any stopwatch reading.
const never = time.Duration(1<<63 - 1)

// Promote makes newID the ID of the history from the end of the stream on, where a frame must
// begin. The present ID becomes the second ID. The connections of replicas are closed. When the
// replicas reconnect, they learn the new ID and get a partial resynchronization from the backlog.
func (s *Source) Promote(newID string) {
	s.mu.Lock()
	s.history = History{ID: newID, ID2: s.history.ID, Offset2: int64(s.frames.end) + 1}
	s.drop(errPromote)
	s.mu.Unlock()
}

// Retain sets whether the backlog is kept while there is no replica. A node that follows another
// node keeps its backlog, so that other replicas can resynchronize from it after a promotion.
func (s *Source) Retain(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retained, s.emptySince = on, s.o.Stopwatch()
	if on && s.backlog == nil && !s.closed {
		s.openBacklog(s.frames.end)
	}
	s.arm()
}

// Write appends a copy of piece, the next bytes of the stream. It does not wait for replicas. It
// may be called with a lock of the log held. Replicas that have been sent everything are woken
// after [linger], so that more bytes are sent at once, or immediately if a client waits for them.
func (s *Source) Write(piece []byte) {
	s.mu.Lock()
	longest := s.frames.add(piece)
	if s.backlog != nil {
		if len(s.senders) > 0 {
			s.growBacklog(longest)
		}
		s.backlog.Write(piece)
	}
	s.mu.Unlock()
	s.common.waker.written(s.common.ackTable.urgent.Load())
}

// openBacklog makes an empty backlog that begins at offset. The caller must hold mu.
func (s *Source) openBacklog(offset uint64) {
	s.size = s.o.BacklogSize()
	s.backlog = NewBacklog(s.size, offset)
}

// growBacklog enlarges the backlog if a frame of frame bytes, which is about to be written, needs
// that. The caller must hold mu.
func (s *Source) growBacklog(frame int) {
	if want := sizeForFrame(s.size, frame); want != s.size {
		s.size = want
		s.backlog.Resize(want)
	}
}

// Offset returns the offset of the end of the stream.
func (s *Source) Offset() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames.end
}

// History returns the present history.
func (s *Source) History() History {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history
}

// BacklogState returns the offset of the first byte in the backlog and the backlog's length in
// bytes, for INFO. active is false if there is no backlog.
func (s *Source) BacklogState() (active bool, first, length uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backlog == nil {
		return false, 0, 0
	}
	first = s.backlog.First()
	return true, first, s.frames.end - first
}

// PSync answers the PSYNC c of a replica that has [protocol.CapaCell1]. p sends the stream after
// reply; it is nil if reply refuses the replica. The replica gets a partial resynchronization if
// it knows the history, by one of its two IDs, and if the backlog contains the first byte that
// the replica lacks. Otherwise it gets a full resynchronization. The caller must first check that
// the state of this node is complete, and act on c.Failover.
func (s *Source) PSync(c protocol.PSync) (reply []byte, p transport.Pump) {
	s.mu.Lock()
	reply, r := s.answer(c)
	s.mu.Unlock()
	if r == nil {
		return reply, nil
	}
	s.o.Log.Info("a replica synchronizes", "addr", c.Addr, "partial", r.online.Load(), "offset", r.position.Load())
	if ours := calendar.Release(); c.Tzdata != "" && c.Tzdata != ours {
		s.o.Log.Warn("the replica has another release of tzdata: windows of a calendar may begin at other times if it is promoted", "addr", c.Addr, "ours", ours, "replica", c.Tzdata)
	}
	return reply, r
}

// answer does the work of PSync for callers that hold mu. r is nil if reply refuses the replica.
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
		return fmt.Appendf(nil, "+CONTINUE %s%s%s %s\r\n", s.history.ID, s.dataSet(c), release(c), ourCapa), r
	}
	s.full.Add(1)
	r.sync = newFullSync(s.o.Keyspace, from)
	return fmt.Appendf(nil, "+FULLRESYNC %s %d%s%s %s\r\n", s.history.ID, from, s.dataSet(c), release(c), ourCapa), r
}

// release returns the part of the answer to the PSYNC c that has the release of tzdata: a space and the
// word. It returns "" if the replica did not send its own, because then it does not know this part.
func release(c protocol.PSync) string {
	if c.Tzdata == "" {
		return ""
	}
	return " " + tzdataCapa + calendar.Release()
}

// dataSet returns the part of the answer to the PSYNC c that has the ID of the data set: a space
// and the ID. It returns "" if the replica did not send the ID of its own data set, because then it
// does not know this part of the answer, or if this node does not know its ID. The caller must hold
// mu.
func (s *Source) dataSet(c protocol.PSync) string {
	if c.DataSet == "" || s.o.DataSet == nil {
		return ""
	}
	if id := s.o.DataSet(c.DataSet); id != "" {
		return " " + id
	}
	return ""
}

// addSender adds the replica that has sent c. The replica is sent the stream from the offset in the
// parameter from. whole says that the replica has a complete state at that offset. addSender
// returns nil if the replica cannot be served now, because a frame is being written whose beginning
// is not in the backlog. The caller must hold mu.
func (s *Source) addSender(c protocol.PSync, from uint64, whole bool) *sender {
	if s.backlog == nil && !s.frames.whole() || s.backlog != nil && from < s.backlog.First() {
		return nil
	}
	if s.backlog == nil {
		s.openBacklog(from)
	}
	r := &sender{sleeper: sleeper{peer: c.Peer, backlog: s.backlog}, common: &s.common, call: c, at: from}
	r.onClose = func() { s.disconnected(r) }
	r.position.Store(from)
	now := s.o.Stopwatch()
	r.active.Store(int64(now))
	s.senders[c.Client] = r
	s.common.ackTable.open(c.Client, whole, from, now)
	s.arm()
	return r
}

// resumes reports in ok whether the replica that has sent c can get a partial resynchronization. If
// ok is true, the replica continues at the offset from. The caller must hold mu.
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

// Resumes reports whether the answer to c would be a partial resynchronization.
func (s *Source) Resumes(c protocol.PSync) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.resumes(c)
	return ok
}

// drop closes the connections of all replicas and removes the replicas. why is the error that Fill
// returns. The caller must hold mu.
func (s *Source) drop(why error) {
	for _, r := range s.senders {
		s.remove(r)
		r.end(why)
	}
}

// DropReplicas closes the connections of all replicas. why is the error that their pumps return.
func (s *Source) DropReplicas(why error) {
	s.mu.Lock()
	s.drop(why)
	s.mu.Unlock()
}

// remove removes the replica r from the source. Its connection is not closed. The caller must
// hold mu.
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

// disconnected removes the replica r after its connection was closed.
func (s *Source) disconnected(r *sender) {
	s.mu.Lock()
	known := s.senders[r.call.Client] == r
	if known {
		s.remove(r)
	}
	s.mu.Unlock()
	s.common.waker.forget(&r.sleeper) // the sleeper may have been registered again after it was removed
	if known {
		s.o.Log.Info("replica disconnected", "addr", r.call.Addr)
	}
}

// tickEvery is the interval of a source's periodic work.
const tickEvery = time.Second

// arm starts the timer for tick, if there is periodic work and the timer is not running. The
// caller must hold mu.
func (s *Source) arm() {
	if !s.ticking.Load() && !s.closed && (s.backlog != nil || !s.common.ackTable.idle()) {
		s.ticking.Store(true)
		s.timer = s.o.After(tickEvery, s.tick)
	}
}

// tick sends keepalives to replicas that were sent nothing for a while, closes the connections of
// replicas that the backlog has overtaken, frees a backlog that is not needed, and wakes peers
// that have waited for maxWait. It does not close the connections of replicas that are silent:
// their sessions do (repl-timeout).
func (s *Source) tick() {
	now := s.o.Stopwatch()
	s.mu.Lock()
	s.ticking.Store(false)
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.ping(now)
	var overtaken []string
	if s.backlog != nil {
		overtaken = s.expel()
		s.shrinkBacklog()
	}
	ttl := s.o.BacklogTTL()
	freed := s.backlog != nil && len(s.senders) == 0 && !s.retained && ttl > 0 && now-s.emptySince >= ttl
	if freed {
		s.backlog = nil
	}
	s.mu.Unlock()
	for _, addr := range overtaken {
		s.o.Log.Warn("replica disconnected: it fell behind the replication backlog (repl-backlog-size)", "addr", addr)
	}
	s.common.ackTable.expire(now - maxWait)
	s.mu.Lock()
	s.arm()
	s.mu.Unlock()
	if freed && s.o.Freed != nil {
		s.o.Freed()
	}
}

// ping makes the source send keepalives to the replicas that were sent nothing for PingPeriod. now
// is the stopwatch reading. The caller must hold mu.
func (s *Source) ping(now time.Duration) {
	period := s.o.PingPeriod()
	for _, r := range s.senders {
		switch {
		case now-time.Duration(r.active.Load()) < period:
		case r.encoder != nil:
			r.encoder.Ping()
		default:
			r.alive.Store(true)
			r.peer.Wake()
		}
	}
}

// expel closes the connections of replicas that the backlog has overtaken, and returns their
// addresses. A sender notices that itself when Fill is called. But Fill is never called for a
// replica that does not read. The caller must hold mu.
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

// shrinkBacklog reduces a backlog that has grown for a long frame, as far as the slowest replica
// allows. The caller must hold mu.
func (s *Source) shrinkBacklog() {
	lacks := uint64(0)
	for _, r := range s.senders {
		lacks = max(lacks, s.frames.end-r.position.Load())
	}
	s.size = sizeAfterFrame(s.size, s.o.BacklogSize(), lacks)
	s.backlog.Resize(s.size)
}

// Counts returns the numbers of resynchronizations, by kind, and of bytes sent, since the start.
func (s *Source) Counts() protocol.Counts {
	return protocol.Counts{
		SyncFull: s.full.Load(), SyncPartialOK: s.partial.Load(), SyncPartialErr: s.refused.Load(),
		BytesOut: s.common.sent.Load(),
	}
}

// Close closes the connections of replicas, wakes waiting peers and stops all timers. Afterwards
// the source serves no replica.
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
