package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/clock"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
)

// The types of records that a [Tap] passes on.
const (
	FrameEffects = byte(typeEffects)
	FrameClock   = byte(typeClock)
	FrameDurable = byte(typeDurable)
	FrameEnd     = byte(typeEnd)
	// FrameWatermark has an instant such that no effect after the frame is earlier.
	FrameWatermark = byte(typeWatermark)
)

// LeastPassedOver is the smallest type of records that a version ignores if it does not know the
// type, in files and in the stream, because such records have no state. It refuses unknown smaller
// types.
const LeastPassedOver = 128

// Frame is a record as it is sent to a replica.
type Frame struct {
	Type byte
	// Body is what follows the type, as a slice of the bytes that were passed to [NextFrame].
	Body []byte
}

// FrameLength returns the length in bytes of the frame that begins with head. It is 0 if head is
// shorter than the 8 bytes before a payload. The error says that no record can have that length.
func FrameLength(head []byte) (int, error) {
	if len(head) < frameHead {
		return 0, nil
	}
	n := binary.LittleEndian.Uint32(head)
	if n == 0 || n > maxRecord {
		return 0, fmt.Errorf("a record of %d bytes, which cannot be", n)
	}
	return frameHead + int(n), nil
}

// NextFrame returns the first frame of b, which may be any bytes, and its length, which is 0 if b
// does not have all of it. The error is that of [FrameLength]. The checksum is not checked, because
// it depends on the file to which the record was written.
func NextFrame(b []byte) (f Frame, n int, err error) {
	n, err = FrameLength(b)
	if n == 0 || n > len(b) {
		return Frame{}, 0, err
	}
	return Frame{Type: b[frameHead], Body: b[frameHead+1 : n : n]}, n, nil
}

// ParseClock returns the clock record in the body of a frame of type [FrameClock].
func ParseClock(body []byte) (clock.Record, error) {
	if len(body) != clockSize {
		return clock.Record{}, fmt.Errorf("a clock record of %d bytes, which cannot be", len(body))
	}
	return parseClock(body), nil
}

// ParseWatermark returns the instant in the body of a frame of type [FrameWatermark].
func ParseWatermark(body []byte) (limit.Instant, error) {
	if len(body) != 8 {
		return 0, fmt.Errorf("a watermark of %d bytes, which cannot be", len(body))
	}
	return limit.Instant(binary.LittleEndian.Uint64(body)), nil
}

// Blocks encodes entries as blocks for a replica. These are the payloads of a snapshot's blocks,
// with their type but without length and checksum. Only one goroutine at a time may use it.
type Blocks struct {
	entries gathered
	out     []byte
	err     error
}

// NewBlocks returns Blocks without entries.
func NewBlocks() *Blocks { return &Blocks{} }

// Add adds an entry, which is copied. If a key is added twice, the later entry wins only if the
// blocks are applied in order.
func (b *Blocks) Add(db int, key []byte, e entry.Entry) { b.entries.add(db, key, e) }

// Take returns the payload of the next block, which is valid until the next call, and its number of
// keys. It encodes the entries of a database that has about least bytes of them or more, or of any
// database if least is 0. A block has at most 256 KiB and one value. ok is false if there is no
// such block; so call Take until then, and check [Blocks.Err].
func (b *Blocks) Take(least int) (payload []byte, keys int, ok bool) {
	for db, from := range b.entries {
		if b.err != nil {
			break
		}
		if from == nil || len(from.entries) == 0 || from.size < least && from.done == 0 {
			continue
		}
		if cap(b.out) > 8*blockSize {
			b.out = nil // was enlarged for a large value
		}
		done := from.done
		if b.out, b.err = from.next(append(b.out[:0], blockEntries), db); b.err != nil {
			break
		}
		keys = from.done - done
		if from.done == len(from.entries) {
			from.reset()
			if cap(from.keys) > keepBuffer {
				from.keys = nil // likewise
			}
		}
		return b.out, keys, true
	}
	return nil, 0, false
}

// Err returns the reason why there are no more blocks although there are entries: a value that is
// larger than a block can be, about 1 GiB.
func (b *Blocks) Err() error { return b.err }

// DecodeBlock calls f for the entries of the payload of a block, which may be any bytes, until f
// returns an error, and returns the number of entries. Key and value are valid until f returns. f
// has to check whether the entry is valid.
func DecodeBlock(payload []byte, f func(db int, key []byte, e entry.Entry) error) (keys int, err error) {
	if len(payload) == 0 {
		return 0, errEntry
	}
	if payload[0] != blockEntries {
		return 0, fmt.Errorf("a block of type %d is not known to this program", payload[0])
	}
	err = decodeBlock(payload[1:], func(db int, key []byte, e entry.Entry) error {
		if len(key) > entry.MaxKeyLength {
			return fmt.Errorf("a key of %d bytes is too long", len(key))
		}
		keys++
		return f(db, key, e)
	})
	return keys, err
}

// CheckBlock returns an error unless the payload of a block, which may be any bytes, has entries
// that a server with that many databases can hold, as far as they alone show.
func CheckBlock(payload []byte, databases int) error {
	_, err := DecodeBlock(payload, func(db int, _ []byte, e entry.Entry) error {
		return errors.Join(checkDatabase(db, databases), effect.CheckEntry(e))
	})
	return err
}

// CheckEffects is [CheckBlock] for the body of a frame of effects.
func CheckEffects(record []byte, databases int) error {
	for first := true; first || len(record) > 0; first = false {
		e, rest, err := effect.Next(record)
		if err == nil {
			err = errors.Join(checkDatabase(e.DB, databases), effect.Check(e))
		}
		if err != nil {
			return err
		}
		record = rest
	}
	return nil
}

// checkDatabase also allows the server's own database, which every server has.
func checkDatabase(db, databases int) error {
	if db >= databases && db != entry.SystemDatabase {
		return fmt.Errorf("database %d is beyond the %d that there are, which is what the option databases says", db, databases)
	}
	return nil
}
