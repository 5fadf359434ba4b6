package replication

import (
	"fmt"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
)

const (
	// minGather is the approximate number of bytes of entries that are copied before they are
	// sent: 64 KiB.
	minGather = 64 << 10
	// stepsPerFill is the maximum number of steps of the keyspace in one turn of an event loop.
	// Each step copies 64 entries under a lock. That many steps gather minGather bytes, unless
	// entries are very small.
	stepsPerFill = 64
)

// fullSync is the remaining part of a full resynchronization. It proceeds in rounds. A round
// copies some keys, sends them in blocks, and then sends the stream up to the present. So a key
// in a block is newer than the stream before the block. The stream after the block may contain
// effects that the key already has. That does no harm, because effects are absolute.
type fullSync struct {
	steps    *keyspace.Steps
	blocks   *persistence.Blocks
	gathered int  // number of bytes of entries that were copied in the present round
	sending  bool // whether the copied entries are being sent
	copied   bool // whether all keys were copied
	kept     bool // whether other commands held all keys that the last call of next tried to copy
	// due is the offset up to which the stream is sent before the next round or the end. It does
	// not change while there are copied keys that were not sent.
	due          uint64
	keys, number uint64 // number of keys in the blocks so far, and number of these blocks
}

// newFullSync begins a full resynchronization of the keys in ks, with a stream that continues at
// offset.
func newFullSync(ks *keyspace.Keyspace, offset uint64) *fullSync {
	f := &fullSync{blocks: persistence.NewBlocks(), due: offset}
	f.steps = ks.Steps(func(db int, key []byte, e entry.Entry) {
		f.gathered += len(key) + len(e.Value)
		f.blocks.Add(db, key, e)
	})
	return f
}

// next returns the payload of the next block, which is valid until the next call. payload is nil at
// the end of a round: then round is true, and the stream has to be sent next. next decrements
// *steps for each step of the copy that it makes. If *steps becomes 0 before a block is ready,
// payload is nil and round is false. next never blocks, because it is called by an event loop that
// also serves other clients.
func (f *fullSync) next(steps *int) (payload []byte, round bool, err error) {
	f.kept = !f.sending
	for ; *steps > 0 && !f.sending; *steps-- {
		done, more, err := f.steps.Next(false)
		if err != nil {
			return nil, false, fmt.Errorf("copying keys: %w", err)
		}
		f.kept = f.kept && !done
		f.copied = !more
		f.sending = f.copied || f.gathered >= minGather
	}
	if !f.sending {
		return nil, false, nil
	}
	payload, keys, ok := f.blocks.Take(0)
	if ok {
		f.keys, f.number = f.keys+uint64(keys), f.number+1
		return payload, false, nil
	}
	if err := f.blocks.Err(); err != nil {
		return nil, false, fmt.Errorf("making a block: %w", err)
	}
	f.sending, f.gathered = false, 0
	if f.copied {
		f.close()
	}
	return nil, true, nil
}

// done reports whether next has returned all blocks.
func (f *fullSync) done() bool { return f.steps == nil }

// close ends the copying of keys. It may be called more than once.
func (f *fullSync) close() {
	if f.steps != nil {
		f.steps.Close()
		f.steps, f.blocks = nil, nil
	}
}
