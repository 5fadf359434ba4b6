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

// ErrOvertaken is the error that closes the connection of a replica which lacks bytes that are no
// longer in the backlog.
var ErrOvertaken = errors.New("the replica was overtaken by the backlog")

// Tail is the stream of this server's frames. replication.Tail implements it.
type Tail interface {
	// Read copies the bytes of the stream that begin at offset into dst, as many as there are, and
	// returns their number. ok is false if the byte at offset is no longer available.
	Read(dst []byte, offset uint64) (n int, ok bool)
	// End returns the offset after the latest byte of the stream.
	End() uint64
}

// EncoderOptions has the dependencies of an [Encoder]. All fields must be set.
type EncoderOptions struct {
	Keyspace *keyspace.Keyspace
	Tail     Tail
	// From is the offset in Tail at which the encoder begins to read. A frame must begin there,
	// and the keyspace must contain the effects of everything before it.
	From uint64
	// Mark is the random delimiter at the end of the RDB: 40 bytes that do not occur in the RDB.
	Mark [markSize]byte
	// Wake must lead to a call of Fill. The encoder calls Sleep when it has nothing to send.
	// Sleep must lead to a call of Fill when the end of Tail is larger than offset, at once if it
	// is already.
	Wake  func()
	Sleep func(offset uint64)
	// Skipped counts values and commands for which Redis has no equivalent.
	Skipped *Tally
}

// Encoder produces what this server sends to a stock Redis or Valkey (6.2 or newer) that
// replicates from it: an RDB, then commands. It implements transport.Pump.
//
// The commands do not repeat each change. A key that has changed is sent with the value that it
// has when the encoder sends it. So a replica has each key as it was on this server at some
// instant, and has all changes up to [Encoder.Acked]. The reply to PSYNC must be FULLRESYNC with
// offset 0.
//
// Only one goroutine at a time may call Fill and Closed. Any goroutine may call the other
// methods.
type Encoder struct {
	o      EncoderOptions
	handle *keyspace.Handle
	phase  phase
	copy   wholeCopy
	ends   endings

	// at is the offset in Tail after the bytes that were read. frames has the bytes of an
	// incomplete frame.
	at     uint64
	frames []byte
	// pending has the keys that have changed since they were sent. flushed has the databases that
	// were emptied before these changes.
	pending map[name]struct{}
	flushed map[int]struct{}

	// out has the bytes to be sent, from index sent on. db is the database that the replica has
	// selected, -1 before the first SELECT. written is the number of bytes of commands that were
	// produced.
	out     []byte
	sent    int
	db      int
	written int64

	// hasAcked says that the replica has acknowledged an offset since the RDB was sent.
	hasAcked  atomic.Bool
	ping, ask atomic.Bool
	online    atomic.Bool

	mu sync.Mutex
	// marks and acked are guarded by mu. A mark has the offset in Tail that the replica has
	// reached when it has executed a number of bytes of commands. acked is the offset of the last
	// mark that the replica has acknowledged.
	marks []backMark
	acked uint64
}

// phase is the progress of serving a replica.
type phase uint8

const (
	copying phase = iota // the RDB is being sent
	waiting              // nothing is sent until Redis has loaded the RDB, because Redis takes all bytes until then for a part of it
	live
)

// backMark records that a replica which has executed written bytes of commands has reached offset
// in Tail.
type backMark struct {
	written int64
	offset  uint64
}

// NewEncoder returns an encoder that begins to serve a replica. It returns an error if the RDB
// cannot be begun. The caller must call Closed at the end.
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

// Acknowledge records the offset that the replica has acknowledged, which counts bytes of
// commands. It ignores offsets that arrive before the RDB was sent.
func (e *Encoder) Acknowledge(offset int64) {
	if !e.online.Load() {
		return
	}
	e.hasAcked.Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for ; n < len(e.marks) && e.marks[n].written <= offset; n++ {
		e.acked = e.marks[n].offset
	}
	e.marks = e.marks[n:]
}

// Acked returns the offset in Tail before which the replica has all changes.
func (e *Encoder) Acked() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.acked
}

// Online reports whether the whole RDB was sent.
func (e *Encoder) Online() bool { return e.online.Load() }

// Ping makes Fill send a PING as a keepalive, unless Fill sends changes at the same time.
func (e *Encoder) Ping() { e.ping.Store(true); e.o.Wake() }

// Ask makes Fill send REPLCONF GETACK, so that the replica acknowledges at once.
func (e *Encoder) Ask() { e.ask.Store(true); e.o.Wake() }

// Closed implements transport.Pump: it frees what the encoder has.
func (e *Encoder) Closed() {
	e.copy.close()
	e.handle.Close()
	e.out, e.frames, e.pending, e.ends = nil, nil, nil, endings{}
}

// steps is the maximum number of pieces of work in one Fill: steps of the RDB, or reads of Tail.
const steps = 8

// Fill implements transport.Pump: it appends the next part of the RDB or of the commands to out,
// limit bytes at most. more says that more can be sent now. After an error the connection has to be
// closed.
func (e *Encoder) Fill(out []byte, limit int) (filled []byte, more bool, err error) {
	bound := len(out) + limit
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

// pour moves bytes from e.out to out, up to a length of bound bytes, and returns out. When e.out is
// empty, pour drops a large buffer, and sets online if the whole RDB was sent.
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

// work produces more bytes to send. worked is false if there is nothing to do. In that case work
// has made sure that Wake or Sleep leads to another call of Fill.
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
	if e.phase == waiting && e.hasAcked.Load() {
		e.phase = live
	}
	if e.phase == live {
		e.ends.reach(now, e.change)
		e.changes()
		e.control()
	}
	if !read && len(e.out) == 0 {
		e.o.Sleep(e.at)
		return false, nil
	}
	return true, nil
}

// step writes the next part of the RDB to e.out, and after the last part the mark.
func (e *Encoder) step() error {
	out, more, err := e.copy.step(e.out)
	if e.out = out; err == nil && !more {
		e.out = append(e.out, e.o.Mark[:]...)
		e.phase = waiting
	}
	return err
}

// readTail reads the next bytes of Tail and records the keys that they change. read says that
// there were any. The error is ErrOvertaken if the bytes are no longer available.
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

// note records the keys that a record of effects changes. If the record consists of one effect, on a
// limiter for which Redis has no equivalent, note counts the effect as skipped and records no key: it
// takes for granted that the replica does not have the key.
func (e *Encoder) note(record []byte) error {
	alone := true
	for len(record) > 0 {
		ef, rest, err := effect.Next(record)
		if err != nil {
			return err
		}
		alone = alone && len(rest) == 0
		switch k := ef.Entry.Kind; {
		case ef.DB == keyspace.System: // this database does not exist in a Redis
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

// flush records that the database db was emptied. Its pending keys are dropped.
func (e *Encoder) flush(db int) {
	e.flushed[db] = struct{}{}
	e.ends.strikeAll(db)
	for n := range e.pending {
		if n.db == db {
			delete(e.pending, n)
		}
	}
}

// changes produces commands for the changes so far, until they have about 64 KiB. When no key is
// pending any more, it sets a mark.
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

// current produces commands that give the replica the present value of the key n, or delete it. A
// value for which Redis has no equivalent counts as skipped, and the key is deleted.
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

// selectDB produces a SELECT, unless db is selected.
func (e *Encoder) selectDB(db int) {
	if e.db != db {
		e.out = appendCommand(e.out, "SELECT", strconv.Itoa(db))
		e.db = db
	}
}

// control produces the commands that Ping and Ask have requested. It leaves out the PING if there
// are other bytes to send.
func (e *Encoder) control() {
	from := len(e.out)
	if e.ping.Swap(false) && from == 0 {
		e.out = appendCommand(e.out, "PING")
	}
	if e.ask.Swap(false) {
		e.out = appendCommand(e.out, "REPLCONF", "GETACK", "*")
	}
	e.written += int64(len(e.out) - from)
}

// maxMarks is the maximum length of Encoder.marks. If there are more, older marks are dropped,
// and acknowledgements up to them count later.
const maxMarks = 4096

// mark records that the commands so far have the effect of everything in Tail before offset. It
// does nothing if the last mark has the same offset.
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
	if len(e.marks) == maxMarks {
		e.marks = append(e.marks[:0], e.marks[maxMarks/2:]...)
	}
	e.marks = append(e.marks, backMark{e.written, offset})
}
