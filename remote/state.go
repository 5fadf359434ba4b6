package remote

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/states"
)

// State is the decoded content of a value in the engine. It is for tools that move the states of
// keys between the engine and servers without an engine.
type State struct {
	// Entry is the entry of the key, even if it has expired. Its kind is [entry.None] for an
	// absent key.
	Entry entry.Entry
	// Stamp is the instant of the decision that wrote Entry.
	Stamp limit.Instant
}

// Unpack decodes raw, a value of the engine. The entry's bytes are a slice of raw. The error is
// [limit.ErrWrongType] if raw was not written by a server of this package. Empty raw is an absent
// key.
func Unpack(raw []byte) (State, error) {
	v, err := decode(raw)
	return State{Entry: v.entry, Stamp: v.stamp}, err
}

// Joint reports whether the entry has several parts, which a keyspace has under several keys: see package states.
func (s *State) Joint() bool { return s.Entry.Kind == states.Joint }

// Packer encodes values as a server of this package does. Any number of goroutines may use a
// Packer.
type Packer struct {
	writer   uint32
	sequence atomic.Uint32
}

// NewPacker returns a Packer with a random number as its writer.
func NewPacker() *Packer { return &Packer{writer: rand.Uint32()} }

// Pack returns the write that replaces old, all bytes of the present value of key, by s. old is
// empty if the key is absent. The error is [limit.ErrWrongType] if no server of this package has
// written old. Pack also returns an error if s is not the state of a limiter.
func (p *Packer) Pack(key, old []byte, s State) (Write, error) {
	v, err := decode(old)
	if err == nil {
		err = states.Check(&s.Entry)
	}
	if err != nil {
		return Write{}, err
	}
	return Write{
		Key: key, Old: compared(old), New: v.encode(newTag(p.writer, p.sequence.Add(1)), s.Stamp, &s.Entry),
		Keep: keepFor(s.Entry.Expiry, s.Stamp),
	}, nil
}
