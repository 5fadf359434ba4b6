package envoy

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/metadata"
)

// frame is the header of a frame of HTTP/2.
type frame struct {
	length int
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
}

// frames finds the frame headers in one direction of a connection.
type frames struct {
	header [9]byte
	have   int // number of bytes of header that have arrived
	skip   int // number of bytes before the next header
}

// next returns the first frame whose header ends in b, and the bytes behind the header. ok is false if there is none.
func (f *frames) next(b []byte) (is frame, rest []byte, ok bool) {
	n := min(f.skip, len(b))
	f.skip -= n
	b = b[n:]
	n = copy(f.header[f.have:], b)
	f.have += n
	if f.have < len(f.header) {
		return frame{}, nil, false
	}
	h := &f.header
	is = frame{
		length: int(h[0])<<16 | int(h[1])<<8 | int(h[2]), kind: http2.FrameType(h[3]), flags: http2.Flags(h[4]),
		stream: binary.BigEndian.Uint32(h[5:]) &^ (1 << 31),
	}
	f.have, f.skip = 0, is.length
	return is, b[n:], true
}

// These are what the parts of calls take in memory, at most, beside the bytes of their messages. A frame of one byte takes as much
// as any other.
const (
	callCost  = 8 << 10
	frameCost = 128
	// fieldCost is that of a header field beside its bytes: grpc-go has a map with a place for each. callCost has room for
	// fields whose cost is callFields.
	fieldCost  = 128
	callFields = 4 << 10
)

// meter counts the memory that grpc-go needs for the calls of a connection which have begun and not ended. grpc-go bounds
// what one call takes, and neither the sum nor the number of frames. Both directions of the connection pass through.
type meter struct {
	mu      sync.Mutex // mu guards the fields below
	in, out frames
	calls   map[uint32]int // the cost in bytes of each call, by its stream
	last    uint32         // number of the stream of the latest call

	held atomic.Int64 // the sum of calls, and of their header fields; any goroutine may read it
}

func (m *meter) begin() {
	m.in.skip, m.calls = len(http2.ClientPreface), make(map[uint32]int)
}

// errMemory is the error of a connection whose unfinished calls take more than maxKept.
var errMemory = errors.New("the calls of the connection that have not ended take too much memory")

// received notes that b came from the peer. The error is errMemory.
func (m *meter) received(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		f, rest, ok := m.in.next(b)
		if !ok {
			return nil
		}
		b = rest
		switch _, runs := m.calls[f.stream]; {
		case f.kind == http2.FrameHeaders && f.stream > m.last:
			m.last = f.stream
			m.add(f.stream, callCost)
		case f.kind == http2.FrameData && runs: // grpc-go drops data for other streams
			m.add(f.stream, f.length+frameCost)
		case f.kind == http2.FrameRSTStream:
			m.end(f.stream)
		}
		if m.held.Load() > maxKept {
			return errMemory
		}
	}
}

// begun counts the header fields of a call beyond callFields until ctx ends, which it does with the call. It returns errMemory if
// the connection has more than maxKept then. In this case the fields stay counted until the connection ends, so that received
// fails at the next frame.
func (m *meter) begun(ctx context.Context, fields metadata.MD) error {
	more := costOf(fields) - callFields
	if more <= 0 {
		return nil
	}
	if m.held.Add(more) > maxKept {
		return errMemory
	}
	context.AfterFunc(ctx, func() { m.held.Add(-more) })
	return nil
}

// costOf returns the bytes that fields take, at most. The allocator takes up to a quarter more than a text has.
func costOf(fields metadata.MD) (cost int64) {
	for name, values := range fields {
		for _, value := range values {
			cost += fieldCost + int64(len(name)+len(value))*5/4
		}
	}
	return cost
}

// sent notes that b goes to the peer.
func (m *meter) sent(b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		f, rest, ok := m.out.next(b)
		if !ok {
			return
		}
		b = rest
		if f.kind == http2.FrameRSTStream || f.kind == http2.FrameHeaders && f.flags.Has(http2.FlagHeadersEndStream) {
			m.end(f.stream)
		}
	}
}

func (m *meter) add(stream uint32, cost int) {
	m.calls[stream] += cost
	m.held.Add(int64(cost))
}

func (m *meter) end(stream uint32) {
	m.held.Add(-int64(m.calls[stream]))
	delete(m.calls, stream)
}
