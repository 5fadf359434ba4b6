package replication

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/replication/protocol"
)

// errOvertaken is the reason to close the connection of a replica that lacks bytes which are no
// longer in the backlog.
var errOvertaken = errors.New("the replica was overtaken by the backlog")

// common has the fields that the senders of a source share.
type common struct {
	waker    *waker
	ackTable *ackTable
	// reached returns the offset of the stream after everything that the keyspace contains. This
	// may be beyond the end of the stream.
	reached   func() uint64
	stopwatch func() time.Duration
	sent      atomic.Int64 // number of bytes sent by all senders
}

// sender serves one replica of a source. It implements [transport.Pump]: the goroutine that feeds
// the connection calls Fill. Fields that other goroutines use are atomic.
type sender struct {
	sleeper
	common *common
	call   protocol.PSync

	// encoder produces the output for a Redis or Valkey; it is nil for a cellserver. It is set
	// before the pump is used. Other goroutines read it with the mutex of the source held.
	encoder Encoder

	at   uint64    // offset of the next byte to be sent
	sync *fullSync // the rest of a full resynchronization; nil if there is none
	// rest is the part of a chunk that was not sent yet: of its header and of its payload.
	rest    [2][]byte
	head    [ChunkHead]byte
	scratch []byte // buffer for chunks that do not fit into the room that is left

	position atomic.Uint64 // the value of at, or the offset up to which an encoder has read the stream
	online   atomic.Bool   // whether the full resynchronization was sent, or was not needed
	active   atomic.Int64  // stopwatch reading when bytes were last sent
	alive    atomic.Bool   // whether a keepalive has to be sent
	ended    atomic.Pointer[error]
	onClose  func() // function that records in the source that the connection is closed
}

// minRoom is the room in the output, in bytes, that a piece of the stream needs to be copied
// directly to the output: 1 KiB. If there is less room, the piece is copied to scratch first.
const minRoom = 1 << 10

// Fill implements [transport.Pump]: it appends the next part of the full resynchronization or of
// the stream to out, limit bytes at most, and returns the result in filled. more says that more can
// be sent now. After an error the connection has to be closed.
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

// fillRedis does the work of Fill for a Redis or Valkey, with the same results. It also lets the
// replica count as soon as the encoder is online.
func (s *sender) fillRedis(out []byte, limit int) (filled []byte, more bool, err error) {
	if why := s.ended.Load(); why != nil {
		return out, false, *why
	}
	out, more, err = s.encoder.Fill(out, limit)
	if err == nil && s.encoder.Online() && !s.online.Swap(true) {
		s.common.ackTable.complete(s.call.Client, 0) // the offset is 0, because all acknowledgements so far were ignored
	}
	return out, more, err
}

// fill does the work of Fill for a replica that is a cellserver. filled is out, extended up to a
// length of bound bytes. more says that there is more to send now; if there is not, the sender is
// woken when there is, or when it has to try to copy keys again.
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

// appendRest appends the rest of the present chunk to out, up to a length of bound bytes.
func (s *sender) appendRest(out []byte, bound int) []byte {
	for i := range s.rest {
		n := min(len(s.rest[i]), bound-len(out))
		out = append(out, s.rest[i][:n]...)
		s.rest[i] = s.rest[i][n:]
	}
	return out
}

// tail appends the next part of the stream to out, up to the offset upto and a length of bound
// bytes. If there is little room, it puts a chunk into rest instead.
func (s *sender) tail(out []byte, bound int, upto uint64) (filled []byte, err error) {
	if bound-len(out) >= minRoom {
		return s.appendTail(out, min(uint64(bound-len(out)-ChunkHead), maxTail, upto-s.at))
	}
	s.scratch, err = s.appendTail(s.scratch[:0], min(minRoom, upto-s.at))
	s.rest[0] = s.scratch
	return out, err
}

// appendTail appends to out a chunk with the next n bytes of the stream, and advances the sender.
// The stream must have at least n more bytes. The error is errOvertaken if the backlog no longer
// has them.
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

// block prepares the next block of a full resynchronization to be sent. At the end of a round it
// lets the stream be sent up to its present end instead. *steps is the number of steps of the
// keyspace that block may take; block decrements it for each step.
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
			// has applied the stream up to the offset reached.
			s.sync.due = max(s.sync.due, s.common.reached())
		}
	}
	return nil
}

// finish prepares the end of the full resynchronization to be sent. The replica counts from now
// on.
func (s *sender) finish() {
	s.scratch = AppendWhole(s.scratch[:0], s.at, s.sync.keys, s.sync.number)
	s.rest[0], s.sync = s.scratch, nil
	s.online.Store(true)
	s.common.ackTable.complete(s.call.Client, s.at)
}

// keepAlive prepares a keepalive to be sent if one is due, and reports whether it did.
func (s *sender) keepAlive() bool {
	if !s.alive.Swap(false) {
		return false
	}
	s.scratch = AppendChunk(s.scratch[:0], Chunk{Type: ChunkAlive})
	s.rest[0] = s.scratch
	return true
}

// sleepAtEnd registers the sender to be woken when the stream continues.
func (s *sender) sleepAtEnd() { s.sleepAt(s.at) }

// sleepAt registers the sender to be woken when the stream is longer than at.
func (s *sender) sleepAt(at uint64) {
	s.common.waker.sleep(&s.sleeper, at)
	// A write to the stream just before the sender was registered has not woken it.
	if s.backlog.End() > at {
		s.common.waker.written(s.common.ackTable.urgent.Load())
	}
}

// end makes Fill return the error why, and closes the connection.
func (s *sender) end(why error) {
	s.ended.Store(&why)
	s.peer.Abort()
}

// Closed implements [transport.Pump]: it frees what the sender has, and removes it from the
// source.
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
