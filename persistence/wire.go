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

// These are the types of the records that a [Tap] gets and that replicas know.
const (
	// FrameEffects is the type of a record with all effects of one command.
	FrameEffects = byte(typeEffects)
	// FrameClock is the type of a record with readings of the server's clocks.
	FrameClock = byte(typeClock)
	// FrameDurable is the type of a record with an offset before which everything was durable.
	FrameDurable = byte(typeDurable)
	// FrameEnd is the type of the last record of a file, which has the form of FrameDurable.
	FrameEnd = byte(typeEnd)
	// FrameWatermark is the type of a frame with an instant such that no effect after the frame is
	// earlier.
	FrameWatermark = byte(typeWatermark)
)

// LeastPassedOver is the smallest type of a record that the server ignores if it does not know the
// type, in files and in the stream to replicas. Records of such types have no state. An unknown
// smaller type is an error.
const LeastPassedOver = 128

// Frame is a record of the log as it is sent to a replica. Type is the type of the record, such as
// FrameEffects. A replica ignores unknown types from LeastPassedOver on.
type Frame struct {
	Type byte
	// Body has the bytes that follow the type. It is a part of the bytes that were passed to
	// [NextFrame].
	Body []byte
}

// FrameLength returns the length in bytes of the frame that begins with head. It returns 0 if head
// is shorter than the 8 bytes that precede a payload. The error says that no record can have that
// length.
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

// NextFrame returns f, the first frame of b, and its length n in bytes. n is 0 if b does not have
// the whole frame. b may be any bytes; it returns the error of [FrameLength]. The checksum is not
// checked, because it depends on the file to which the record was written.
func NextFrame(b []byte) (f Frame, n int, err error) {
	n, err = FrameLength(b)
	if n == 0 || n > len(b) {
		return Frame{}, 0, err
	}
	return Frame{Type: b[frameHead], Body: b[frameHead+1 : n : n]}, n, nil
}

// ParseClock returns the clock record in body, the body of a frame of type [FrameClock]. The error
// says that body has a wrong length.
func ParseClock(body []byte) (clock.Record, error) {
	if len(body) != clockSize {
		return clock.Record{}, fmt.Errorf("a clock record of %d bytes, which cannot be", len(body))
	}
	return parseClock(body), nil
}

// ParseWatermark returns the instant in body, the body of a frame of type [FrameWatermark]. The
// error says that body has a wrong length.
func ParseWatermark(body []byte) (limit.Instant, error) {
	if len(body) != 8 {
		return 0, fmt.Errorf("a watermark of %d bytes, which cannot be", len(body))
	}
	return limit.Instant(binary.LittleEndian.Uint64(body)), nil
}

// Blocks collects entries and encodes them as blocks for a replica. A block is the payload of a
// block of a snapshot file, with the type byte but without length and checksum. Only one goroutine
// at a time may use a Blocks.
type Blocks struct {
	entries gathered
	out     []byte
	err     error
}

// NewBlocks returns a Blocks without entries.
func NewBlocks() *Blocks { return &Blocks{} }

// Add adds a copy of the entry e of key in database db. If a key is added twice, the receiver gets
// the later entry only if it applies the blocks in order.
func (b *Blocks) Add(db int, key []byte, e entry.Entry) { b.entries.add(db, key, e) }

// Take returns the payload of the next block and its number of keys. It encodes entries of a
// database that has about least bytes of entries or more; with least 0, of any database. A block
// has up to 256 KiB, and one entry more. payload is valid until the next call. ok is false if there
// is no such block. The caller calls Take until ok is false, and then checks [Blocks.Err].
func (b *Blocks) Take(least int) (payload []byte, keys int, ok bool) {
	for db, from := range b.entries {
		if b.err != nil {
			break
		}
		if from == nil || len(from.entries) == 0 || from.size < least && from.done == 0 {
			continue
		}
		if cap(b.out) > 8*blockSize {
			b.out = nil // the buffer was enlarged for a large value, so it is not kept
		}
		done := from.done
		if b.out, b.err = from.next(append(b.out[:0], blockEntries), db); b.err != nil {
			break
		}
		keys = from.done - done
		if from.done == len(from.entries) {
			from.reset()
			if cap(from.keys) > keepBuffer {
				from.keys = nil // the buffer was enlarged for large values, so it is not kept
			}
		}
		return b.out, keys, true
	}
	return nil, 0, false
}

// Err returns the reason why Take returns no more blocks although there are entries: a value is
// larger than a block can be, about 1 GiB. It returns nil if there is no such value.
func (b *Blocks) Err() error { return b.err }

// DecodeBlock calls f for the entries of the block payload, until f returns an error. keys is the
// number of calls. payload may be any bytes. key and the value of e are valid until f returns. f
// has to check whether e is a valid entry. It returns the error of f, or says that payload is not a
// block of entries.
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

// CheckBlock returns an error if the block payload is not valid. payload may have any content. It
// is valid if all its entries are valid for a server with the given number of databases.
func CheckBlock(payload []byte, databases int) error {
	_, err := DecodeBlock(payload, func(db int, _ []byte, e entry.Entry) error {
		return errors.Join(checkDatabase(db, databases), effect.CheckEntry(e))
	})
	return err
}

// CheckEffects returns an error if record, the body of a frame of effects, is not valid. record may
// have any content. It is valid if it has at least one effect, and if all its effects are valid for
// a server with the given number of databases.
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

// checkDatabase returns an error if a server with that many databases has no database db. Every
// server has [entry.SystemDatabase].
func checkDatabase(db, databases int) error {
	if db >= databases && db != entry.SystemDatabase {
		return fmt.Errorf("database %d is beyond the %d that there are, which is what the option databases says", db, databases)
	}
	return nil
}
