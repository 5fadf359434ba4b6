package replication

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/replication/protocol"
)

// errOvertaken closes the connection of a replica that has fallen behind by more than the
// backlog.
var errOvertaken = errors.New("the replica was overtaken by the backlog")

// common is shared by the senders of a source.
type common struct {
	waker    *waker
	ackTable *ackTable
	// reached returns the offset behind everything that is in the keyspace now. It may be ahead
	// of the stream.
	reached   func() uint64
	stopwatch func() time.Duration
	sent      atomic.Int64 // bytes sent, by all senders
}

// sender is a replica that a source serves. It implements transport.Pump: the goroutine that owns
// the connection calls Fill. Fields that other goroutines use are atomic.
type sender struct {
	sleeper
	common *common
	call   protocol.PSync

	// encoder produces the output for a Redis; it is nil for a server of this kind. It is set
	// before the pump is used. Other goroutines read it with the mutex of the source held.
	encoder Encoder

	at   uint64    // the offset of the next byte to be sent
	sync *fullSync // the remaining full resynchronization, or nil
	// rest is the unsent remainder of a chunk: of its header and of its payload.
	rest    [2][]byte
	head    [ChunkHead]byte
	scratch []byte // buffer for chunks that do not fit into the room left

	position atomic.Uint64 // at, or the offset up to which an encoder has read the stream
	online   atomic.Bool   // the full resynchronization was sent, or was not needed
	active   atomic.Int64  // stopwatch reading when bytes were last sent
	alive    atomic.Bool   // a keepalive is to be sent
	ended    atomic.Pointer[error]
	onClose  func() // tells the source that the connection is closed
}

// minRoom is the room from which on a piece of the stream is read directly into the output: 1
// KiB.
const minRoom = 1 << 10

// Fill implements transport.Pump.
func (s *sender) Fill(out []byte, limit int) (filled []byte, more bool, err error) {
	from, bound := len(out), len(out)+limit
	if s.encoder != nil {
		out, more, err = s.fillRedis(out, limit)
	} else {
		out, more, err = s.fill(out, bound)
	}
	if n := len(out) - from; n > 0 {
		s.common.sent.Add(int64(n))
		s.active.Store(int64(s.common.stopwatch()))
	}
	return out, more, err
}

// fillRedis is Fill for a Redis.
func (s *sender) fillRedis(out []byte, limit int) (filled []byte, more bool, err error) {
	if why := s.ended.Load(); why != nil {
		return out, false, *why
	}
	out, more, err = s.encoder.Fill(out, limit)
	if err == nil && s.encoder.Online() && !s.online.Swap(true) {
		s.common.ackTable.complete(s.call.Client, 0) // 0: all acknowledgements so far were ignored
	}
	return out, more, err
}

// fill appends to out, up to a length of bound bytes.
func (s *sender) fill(out []byte, bound int) (filled []byte, more bool, err error) {
	for steps := stepsPerFill; ; {
		if why := s.ended.Load(); why != nil {
			return out, false, *why
		}
		out = s.appendRest(out, bound)
		if len(out) == bound {
			return out, true, nil
		}
		upto := s.backlog.End()
		if s.sync != nil {
			upto = min(upto, s.sync.due)
		}
		switch {
		case s.at < upto:
			out, err = s.tail(out, bound, upto)
		case s.sync == nil || s.sync.done() && s.at < s.sync.due:
			if s.keepAlive() {
				continue
			}
			s.sleepAtEnd()
			return out, false, nil
		case s.sync.done():
			s.finish()
		case steps == 0 && s.sync.kept:
			s.common.waker.after(linger, s.peer.Wake)
			return out, false, nil
		case steps == 0:
			return out, true, nil
		default:
			err = s.block(&steps)
		}
		if err != nil {
			return out, false, err
		}
	}
}

// appendRest appends the remainder of a chunk, as far as there is room.
func (s *sender) appendRest(out []byte, bound int) []byte {
	for i := range s.rest {
		n := min(len(s.rest[i]), bound-len(out))
		out = append(out, s.rest[i][:n]...)
		s.rest[i] = s.rest[i][n:]
	}
	return out
}

// tail appends the stream up to the offset upto, as far as there is room.
func (s *sender) tail(out []byte, bound int, upto uint64) (filled []byte, err error) {
	if bound-len(out) >= minRoom {
		return s.appendTail(out, min(uint64(bound-len(out)-ChunkHead), maxTail, upto-s.at))
	}
	s.scratch, err = s.appendTail(s.scratch[:0], min(minRoom, upto-s.at))
	s.rest[0] = s.scratch
	return out, err
}

// appendTail appends a chunk with the next n bytes of the stream, which must have them.
func (s *sender) appendTail(out []byte, n uint64) ([]byte, error) {
	from := len(out)
	out = slices.Grow(openChunk(out), int(n))[:from+ChunkHead+int(n)]
	read, ok := s.backlog.Read(out[from+ChunkHead:], s.at)
	if !ok {
		return out[:from], errOvertaken
	}
	out = out[:from+ChunkHead+read]
	sealChunk(out[from:], ChunkTail, s.at)
	s.move(uint64(read))
	return out, nil
}

func (s *sender) move(n uint64) {
	s.at += n
	s.position.Store(s.at)
}

// block prepares the next block of a full resynchronization to be sent. At the end of a round, it
// makes the stream up to the present due instead.
func (s *sender) block(steps *int) error {
	payload, round, err := s.sync.next(steps)
	if err != nil {
		return err
	}
	if payload != nil {
		writeHead(s.head[:], ChunkBlock, s.at, payload)
		s.rest = [2][]byte{s.head[:], payload}
	}
	if round {
		s.sync.due = s.backlog.End()
		if s.sync.done() {
			// The copied keys may be ahead of the stream. The replica's state is complete when it
			// has applied the stream up to that offset.
			s.sync.due = max(s.sync.due, s.common.reached())
		}
	}
	return nil
}

// finish sends the end of the full resynchronization.
func (s *sender) finish() {
	s.scratch = AppendWhole(s.scratch[:0], s.at, s.sync.keys, s.sync.number)
	s.rest[0], s.sync = s.scratch, nil
	s.online.Store(true)
	s.common.ackTable.complete(s.call.Client, s.at)
}

// keepAlive prepares a keepalive to be sent, if one is due.
func (s *sender) keepAlive() bool {
	if !s.alive.Swap(false) {
		return false
	}
	s.scratch = AppendChunk(s.scratch[:0], Chunk{Type: ChunkAlive})
	s.rest[0] = s.scratch
	return true
}

// sleepAtEnd sleeps until the stream continues.
func (s *sender) sleepAtEnd() { s.sleepAt(s.at) }

func (s *sender) sleepAt(at uint64) {
	s.common.waker.sleep(&s.sleeper, at)
	// The stream may have been written to just before the sender slept, which woke no sleeper.
	if s.backlog.End() > at {
		s.common.waker.written(s.common.ackTable.urgent.Load())
	}
}

// end closes the connection.
func (s *sender) end(why error) {
	s.ended.Store(&why)
	s.peer.Abort()
}

// Closed implements transport.Pump.
func (s *sender) Closed() {
	if s.sync != nil {
		s.sync.close()
		s.sync = nil
	}
	s.rest = [2][]byte{}
	if s.encoder != nil {
		s.encoder.Closed()
	}
	s.onClose()
}
