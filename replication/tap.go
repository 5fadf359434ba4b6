package replication

import (
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/persistence"
)

// maxHeld is the maximum number of bytes that a sealed tap holds back. The clock records of a
// pause fit, but not many effects.
const maxHeld = 1 << 20

// stream is the destination of a tap's bytes: a [Source].
type stream interface {
	Write(piece []byte)
	Offset() uint64
}

// tap passes what the log of a primary writes to its stream. While a tap is sealed, it holds the
// bytes back, so that the stream does not advance during a handover. If the handover is aborted,
// the tap passes these bytes on.
type tap struct {
	log Log
	to  stream
	gap func() // function that begins a new history, because bytes are missing in the stream

	mu sync.Mutex // mu guards the fields below
	// ended says that the last piece was the end of a write of the log. At the end of a write all
	// frames are complete.
	ended   bool
	sealing bool // whether the tap will be sealed at the end of the present write
	sealed  bool
	held    []byte
	heldEnd uint64 // position of the log after held, or after bytes that were lost; 0 if nothing has arrived
	lost    bool   // whether bytes are missing in held

	// ahead is the offset of the stream minus the corresponding position of the log.
	ahead atomic.Int64
}

func newTap(log Log, to stream, gap func()) *tap {
	return &tap{log: log, to: to, gap: gap, ended: true}
}

// begin is called when the log begins to pass on what it writes after the position from. That
// position corresponds to the present end of the stream.
func (t *tap) begin(from uint64) {
	t.ahead.Store(int64(t.to.Offset()) - int64(from))
}

// Wrote implements [persistence.Tap]: it passes piece, which the log has written, to the stream,
// or holds it back. end is the position of the log after piece if piece ends a write, otherwise
// 0.
func (t *tap) Wrote(piece []byte, end uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = end != 0
	switch {
	case !t.sealed:
		t.to.Write(piece)
		if t.ended {
			t.ahead.Store(int64(t.to.Offset()) - int64(end))
			t.sealed, t.sealing = t.sealing, false
		}
	case t.lost:
	case len(t.held)+len(piece) > maxHeld:
		t.lost, t.held = true, nil
	default:
		t.held = append(t.held, piece...)
	}
	if t.sealed && t.ended {
		t.heldEnd = end
	}
}

// Gap implements [persistence.Tap]: the log has dropped something, so the stream needs a new
// history.
func (t *tap) Gap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.sealed {
		t.lost, t.held = true, nil
		return
	}
	t.sealed, t.sealing = t.sealing, false
	t.gap()
}

// seal makes the tap hold back what the log writes from now on. If a write is in progress, the tap
// begins to hold back at the end of that write.
func (t *tap) seal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed, t.sealing = t.sealed || t.ended, !t.sealed && !t.ended
}

func (t *tap) isSealed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sealed
}

// open undoes seal: it passes the bytes that were held back to the stream. If bytes were lost, it
// begins a new history instead.
func (t *tap) open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed && t.lost {
		t.gap()
	} else if len(t.held) > 0 {
		t.to.Write(t.held)
	}
	if t.ended && t.heldEnd != 0 {
		t.ahead.Store(int64(t.to.Offset()) - int64(t.heldEnd))
	}
	t.sealed, t.sealing, t.lost, t.held, t.heldEnd = false, false, false, nil, 0
}

// changed reports whether effects were held back or lost, so that the state differs from the
// stream.
func (t *tap) changed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost {
		return true
	}
	for rest := t.held; len(rest) > 0; {
		f, n, err := persistence.NextFrame(rest)
		if n == 0 || err != nil || f.Type == persistence.FrameEffects {
			return true
		}
		rest = rest[n:]
	}
	return false
}

// reached returns the offset of the stream after everything that was appended to the log.
func (t *tap) reached() uint64 { return t.offset(t.log.Position()) }

// offset returns the offset of the stream that corresponds to position, a position of the log. It
// returns 0 if position is before the stream began.
func (t *tap) offset(position uint64) uint64 {
	return uint64(max(0, int64(position)+t.ahead.Load()))
}
