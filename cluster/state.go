package cluster

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// State is what a value in the engine says of a key, for tools that move states from and to
// where there is no engine.
type State struct {
	// Entry is what the key holds, expired or not; of kind [entry.None] for no key.
	Entry entry.Entry
	// Stamp is the instant of the decision that wrote it.
	Stamp limit.Instant
}

// Unpack reads a value. Its bytes are those of raw. The error is [limit.ErrWrongType] for
// what no server has written.
func Unpack(raw []byte) (State, error) {
	v, err := decode(raw)
	return State{Entry: v.entry, Stamp: v.stamp}, err
}

// Packer makes values as a server does. Any goroutine may use it.
type Packer struct {
	writer   uint32
	sequence atomic.Uint32
}

// NewPacker returns a writer of its own.
func NewPacker() *Packer { return &Packer{writer: rand.Uint32()} }

// Pack is the write that puts s in the place of old, the whole value that is there. The error
// is [limit.ErrWrongType] for an old value that no server has written, and for what the state
// of no limiter is.
func (p *Packer) Pack(key, old []byte, s State) (Write, error) {
	v, err := decode(old)
	if err == nil {
		err = checkEntry(&s.Entry)
	}
	if err != nil {
		return Write{}, err
	}
	return Write{
		Key: key, Old: compared(old), New: v.encode(newTag(p.writer, p.sequence.Add(1)), s.Stamp, &s.Entry),
		Keep: keepFor(s.Entry.Expiry, s.Stamp),
	}, nil
}
