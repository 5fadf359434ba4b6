package cluster

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
)

// State is the state of a key in a value of the engine, for tools that move states to and from
// servers without an engine.
type State struct {
	// Entry is the entry of the key, expired or not; of kind [entry.None] for an absent key.
	Entry entry.Entry
	// Stamp is the instant of the decision that wrote it.
	Stamp limit.Instant
}

// Unpack decodes a value. The entry's bytes are a slice of raw. The error is [limit.ErrWrongType]
// for a value that no server has written.
func Unpack(raw []byte) (State, error) {
	v, err := decode(raw)
	return State{Entry: v.entry, Stamp: v.stamp}, err
}

// Packer encodes values as a server does. Any goroutine may use it.
type Packer struct {
	writer   uint32
	sequence atomic.Uint32
}

// NewPacker returns a Packer with a random writer id.
func NewPacker() *Packer { return &Packer{writer: rand.Uint32()} }

// Pack returns the write that replaces old, the whole present value, by s. The error is
// [limit.ErrWrongType] if no server has written old, and if s is not the state of a limiter.
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
