package replication

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/replication/protocol"
)

// errOvertaken ends a replica that is slower than the stream for longer than the backlog.
var errOvertaken = errors.New("the replica was overtaken by the backlog")

// common is what the senders of a source share.
type common struct {
	waker    *waker
	ackTable *ackTable
	// reached is the offset behind all that is in the keyspace now. It may lie ahead of the
	// stream.
	reached   func() uint64
	stopwatch func() time.Duration
	sent      atomic.Int64 // bytes, of all senders
}

// sender is a replica that a source serves. It implements transport.Pump: its connection
// calls Fill, on the goroutine that it belongs to. What other goroutines use is atomic.
type sender struct {
	sleeper
	common *common
	call   protocol.PSync

	// encoder makes what is sent instead, or is nil. It is set before the pump is used; others
	// read it with the mutex of the source.
	encoder Encoder

	at   uint64    // the offset of the next byte to be sent
	sync *fullSync // what is left of the full sync, or nil
	// rest is what is left to be sent of a chunk, its head and its payload.
	rest    [2][]byte
	head    [ChunkHead]byte
	scratch []byte // of chunks for which there was little room

	position atomic.Uint64 // at, or up to where an encoder has read the stream
	online   atomic.Bool   // the full sync was sent, or there was none
	active   atomic.Int64  // when bytes were last sent, by the stopwatch
	alive    atomic.Bool   // it is to be told that we are there
	ended    atomic.Pointer[error]
	leave    func() // tells the source that the connection is gone
}

// leastRoom is the room from which on a piece of the stream is copied to its place at once.
const leastRoom = 1 << 10

// Fill implements transport.Pump.
func (s *sender) Fill(out []byte, most int) (filled []byte, more bool, err error) {
	from, bound := len(out), len(out)+most
	if s.encoder != nil {
		out, more, err = s.fillRedis(out, most)
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
func (s *sender) fillRedis(out []byte, most int) (filled []byte, more bool, err error) {
	if why := s.ended.Load(); why != nil {
		return out, false, *why
	}
	out, more, err = s.encoder.Fill(out, most)
	if err == nil && s.encoder.Online() && !s.online.Swap(true) {
		s.common.ackTable.complete(s.call.Client, 0) // it hears nothing before
	}
	return out, more, err
}

// fill appends to out, which may become bound bytes long.
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
			if s.greet() {
				continue
			}
			s.rests()
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

// appendRest appends what is left of a chunk, as far as there is room.
func (s *sender) appendRest(out []byte, bound int) []byte {
	for i := range s.rest {
		n := min(len(s.rest[i]), bound-len(out))
		out = append(out, s.rest[i][:n]...)
		s.rest[i] = s.rest[i][n:]
	}
	return out
}

// tail appends the stream up to that offset, as far as there is room.
func (s *sender) tail(out []byte, bound int, upto uint64) (filled []byte, err error) {
	if bound-len(out) >= leastRoom {
		return s.appendTail(out, min(uint64(bound-len(out)-ChunkHead), maxTail, upto-s.at))
	}
	s.scratch, err = s.appendTail(s.scratch[:0], min(leastRoom, upto-s.at))
	s.rest[0] = s.scratch
	return out, err
}

// appendTail appends a chunk with the next n bytes of the stream, which has them.
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

// block makes the next block of a full sync what is sent next, or the stream up to the
// present.
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
			// What was copied may be newer than the stream. The replica is whole when it
			// has applied the stream up to there.
			s.sync.due = max(s.sync.due, s.common.reached())
		}
	}
	return nil
}

// finish sends the end of the full sync.
func (s *sender) finish() {
	s.scratch = AppendWhole(s.scratch[:0], s.at, s.sync.keys, s.sync.number)
	s.rest[0], s.sync = s.scratch, nil
	s.online.Store(true)
	s.common.ackTable.complete(s.call.Client, s.at)
}

// greet sends that we are there, if that is asked for.
func (s *sender) greet() bool {
	if !s.alive.Swap(false) {
		return false
	}
	s.scratch = AppendChunk(s.scratch[:0], Chunk{Type: ChunkAlive})
	s.rest[0] = s.scratch
	return true
}

// rests sleeps until the stream goes on.
func (s *sender) rests() { s.sleepsAt(s.at) }

func (s *sender) sleepsAt(at uint64) {
	s.common.waker.sleep(&s.sleeper, at)
	// It may have gone on just before: then that was told to nobody.
	if s.backlog.End() > at {
		s.common.waker.written(s.common.ackTable.urgent.Load())
	}
}

// end has the connection closed.
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
	s.leave()
}
