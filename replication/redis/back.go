package redis

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/persistence"
)

// ErrOvertaken ends the link of a replica that is slower than the stream for longer than the
// backlog.
var ErrOvertaken = errors.New("the replica was overtaken by the backlog")

// Tail is the stream of our own frames. A backlog of package replication is one.
type Tail interface {
	// Read copies bytes of the stream from offset on, as many as there are. It is not ok if
	// they are not there any more.
	Read(dst []byte, offset uint64) (n int, ok bool)
	// End is the offset behind the latest byte.
	End() uint64
}

// EncoderOptions are what an [Encoder] needs. All of them have to be set.
type EncoderOptions struct {
	Keyspace *keyspace.Keyspace
	Tail     Tail
	// From is the offset at which a frame of the tail begins. All before is in the keyspace.
	From uint64
	// Mark is what the RDB ends with: 40 bytes that are not in it by chance.
	Mark [markSize]byte
	// Wake has the connection call Fill again. Sleep is called when there is nothing to send:
	// it has to lead to Wake when the tail has got behind offset, at once if it has.
	Wake  func()
	Sleep func(offset uint64)
	// Skipped counts what a Redis has no equal of.
	Skipped *Tally
}

// Encoder is what a stock Redis or Valkey (6.2 or newer) is sent that replicates from us: an
// RDB, then commands. It implements transport.Pump.
//
// The commands are no log of changes: a key that has changed is sent as it is when its turn
// comes. So a replica has every key as it was here at some instant, and all changes up to
// [Encoder.Acked]. It has to be told the offset 0 with FULLRESYNC.
//
// Fill and Closed belong to one goroutine at a time. The other methods may be called by any.
type Encoder struct {
	o      EncoderOptions
	handle *keyspace.Handle
	phase  phase
	copy   wholeCopy
	ends   endings

	// at is the offset of the tail behind what was read; frames has what was read of a frame
	// that is not whole yet.
	at     uint64
	frames []byte
	// pending are keys that have changed, flushed databases that were emptied before.
	pending map[name]struct{}
	flushed map[int]struct{}

	// out is what is to be sent, from sent on. db is what the replica has selected, written
	// how many bytes of commands were made.
	out     []byte
	sent    int
	db      int
	written int64

	// heard says that the replica has acknowledged something.
	heard      atomic.Bool
	ping, asks atomic.Bool
	online     atomic.Bool

	mu sync.Mutex
	// marks, guarded by mu, say which offset of the tail is reached with one of the commands;
	// acked is that of the last one that was heard.
	marks []backMark
	acked uint64
}

// phase is how far a replica is.
type phase uint8

const (
	copying phase = iota // the RDB is being sent
	waiting              // Redis takes what comes behind an RDB for a part of it until it has loaded that
	live
)

type backMark struct {
	written int64
	offset  uint64
}

// NewEncoder begins to serve a replica.
func NewEncoder(o EncoderOptions) (*Encoder, error) {
	e := &Encoder{
		o: o, handle: o.Keyspace.NewHandle(), at: o.From, acked: o.From, db: -1,
		pending: map[name]struct{}{}, flushed: map[int]struct{}{},
	}
	e.ends = newEndings(e.handle.Refresh())
	e.copy = wholeCopy{skipped: o.Skipped, later: e.change, ends: e.ends.file}
	if err := e.copy.begin(o.Keyspace); err != nil {
		e.handle.Close()
		return nil, err
	}
	e.out = fmt.Appendf(nil, "$EOF:%s\r\n", o.Mark[:])
	return e, nil
}

// Acknowledge takes what the replica acknowledges.
func (e *Encoder) Acknowledge(offset int64) {
	if !e.online.Load() {
		return
	}
	e.heard.Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for ; n < len(e.marks) && e.marks[n].written <= offset; n++ {
		e.acked = e.marks[n].offset
	}
	e.marks = e.marks[n:]
}

// Acked is the offset of the tail up to which the replica has everything.
func (e *Encoder) Acked() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.acked
}

// Online reports whether the RDB was sent.
func (e *Encoder) Online() bool { return e.online.Load() }

// Ping has a PING sent, so that the replica knows that we are there; Ask has it acknowledge
// at once.
func (e *Encoder) Ping() { e.ping.Store(true); e.o.Wake() }

// Ask is described with Ping.
func (e *Encoder) Ask() { e.asks.Store(true); e.o.Wake() }

// Closed implements transport.Pump.
func (e *Encoder) Closed() {
	e.copy.close()
	e.handle.Close()
	e.out, e.frames, e.pending, e.ends = nil, nil, nil, endings{}
}

// steps is how much is done in one Fill at most: steps of the copy, or reads of the tail.
const steps = 8

// Fill implements transport.Pump.
func (e *Encoder) Fill(out []byte, most int) (filled []byte, more bool, err error) {
	bound := len(out) + most
	for range steps {
		if out = e.pour(out, bound); len(out) == bound {
			return out, true, nil
		}
		worked, err := e.work()
		switch {
		case err != nil:
			return out, false, err
		case !worked && len(e.out) == 0:
			return out, false, nil
		}
	}
	return e.pour(out, bound), true, nil
}

// pour appends what is to be sent, as far as there is room.
func (e *Encoder) pour(out []byte, bound int) []byte {
	n := min(bound-len(out), len(e.out)-e.sent)
	out = append(out, e.out[e.sent:e.sent+n]...)
	if e.sent += n; e.sent == len(e.out) {
		if e.out, e.sent = e.out[:0], 0; cap(e.out) > kept {
			e.out = nil
		}
		if e.phase != copying {
			e.online.Store(true)
		}
	}
	return out
}

// work makes more to be sent. It returns false when there is nothing to do, and somebody
// will wake the connection.
func (e *Encoder) work() (worked bool, err error) {
	if !e.handle.Enter() {
		e.o.Keyspace.World().NotifyStart(e.o.Wake)
		return false, nil
	}
	defer e.handle.Leave()
	now := e.handle.Refresh()
	read, err := e.readTail()
	if err != nil {
		return false, err
	}
	if e.phase == copying {
		return true, e.step()
	}
	if e.phase == waiting && e.heard.Load() {
		e.phase = live
	}
	if e.phase == live {
		e.ends.reach(now, e.change)
		e.changes()
		e.greet()
	}
	if !read && len(e.out) == 0 {
		e.o.Sleep(e.at)
		return false, nil
	}
	return true, nil
}

// step writes a part of the RDB.
func (e *Encoder) step() error {
	out, more, err := e.copy.step(e.out)
	if e.out = out; err == nil && !more {
		e.out = append(e.out, e.o.Mark[:]...)
		e.phase = waiting
	}
	return err
}

// readTail reads the next bytes of the tail and notes which keys they change.
func (e *Encoder) readTail() (read bool, err error) {
	from := len(e.frames)
	n := int(min(e.o.Tail.End()-e.at, piece))
	if n == 0 {
		return false, nil
	}
	e.frames = slices.Grow(e.frames, n)[:from+n]
	n, ok := e.o.Tail.Read(e.frames[from:], e.at)
	if e.frames = e.frames[:from+max(n, 0)]; !ok {
		return false, ErrOvertaken
	}
	e.at += uint64(n)
	rest := e.frames
	for {
		f, size, err := persistence.NextFrame(rest)
		if err != nil {
			return false, err
		}
		if size == 0 {
			break
		}
		if f.Type == persistence.FrameEffects {
			if err := e.note(f.Body); err != nil {
				return false, err
			}
		}
		rest = rest[size:]
	}
	e.frames = append(e.frames[:0], rest...)
	if cap(e.frames) > kept && len(e.frames) < kept/2 {
		e.frames = slices.Clone(e.frames)
	}
	return n > 0, nil
}

// note notes the keys of a record. A limiter that Redis has no equal of, alone in its
// record, was one before, so the replica does not have the key.
func (e *Encoder) note(record []byte) error {
	alone := true
	for len(record) > 0 {
		ef, rest, err := effect.Next(record)
		if err != nil {
			return err
		}
		alone = alone && len(rest) == 0
		switch k := ef.Entry.Kind; {
		case ef.DB == keyspace.System: // which no Redis has
		case ef.Flush:
			e.flush(ef.DB)
		case alone && k != entry.None && !sendable(k):
			e.o.Skipped.Add(k.Encoding(), 1)
		default:
			e.change(name{ef.DB, string(ef.Key)})
		}
		record, alone = rest, false
	}
	return nil
}

func (e *Encoder) change(n name) { e.pending[n] = struct{}{} }

// flush notes that a database was emptied. What was pending in it is void.
func (e *Encoder) flush(db int) {
	e.flushed[db] = struct{}{}
	e.ends.strikeAll(db)
	for n := range e.pending {
		if n.db == db {
			delete(e.pending, n)
		}
	}
}

// changes sends what has changed, about as much as fits into a turn.
func (e *Encoder) changes() {
	from := len(e.out)
	for db := range e.flushed {
		e.selectDB(db)
		e.out = appendCommand(e.out, "FLUSHDB")
		delete(e.flushed, db)
	}
	for n := range e.pending {
		if len(e.out)-from >= piece {
			break
		}
		delete(e.pending, n)
		e.current(n)
	}
	e.written += int64(len(e.out) - from)
	if len(e.pending) == 0 {
		e.mark(e.at - uint64(len(e.frames)))
	}
}

// current sends what a key is now.
func (e *Encoder) current(n name) {
	now, exists := e.handle.Load(n.db, []byte(n.key))
	if exists && !sendable(now.Kind) {
		e.o.Skipped.Add(now.Kind.Encoding(), 1)
		exists = false
	}
	e.selectDB(n.db)
	if !exists {
		e.ends.strike(n)
		e.out = appendCommand(e.out, "DEL", n.key)
		return
	}
	if now.Expiry != entry.NoExpiry {
		e.ends.file(n, now.Expiry)
	} else {
		e.ends.strike(n)
	}
	e.out = appendEntry(e.out, n.key, &now, e.o.Keyspace.Clock())
}

func (e *Encoder) selectDB(db int) {
	if e.db != db {
		e.out = appendCommand(e.out, "SELECT", strconv.Itoa(db))
		e.db = db
	}
}

// greet sends what Ping and Ask want.
func (e *Encoder) greet() {
	from := len(e.out)
	if e.ping.Swap(false) && from == 0 {
		e.out = appendCommand(e.out, "PING")
	}
	if e.asks.Swap(false) {
		e.out = appendCommand(e.out, "REPLCONF", "GETACK", "*")
	}
	e.written += int64(len(e.out) - from)
}

// mostMarks bounds Encoder.marks. Without the older ones an acknowledgement counts later.
const mostMarks = 4096

// mark notes that all of the tail up to offset is in the commands so far.
func (e *Encoder) mark(offset uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.acked
	if n := len(e.marks); n > 0 {
		last = e.marks[n-1].offset
	}
	if last == offset {
		return
	}
	if len(e.marks) == mostMarks {
		e.marks = append(e.marks[:0], e.marks[mostMarks/2:]...)
	}
	e.marks = append(e.marks, backMark{e.written, offset})
}
