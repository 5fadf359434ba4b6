package replication

import (
	"fmt"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
)

const (
	// minGather is about how many bytes of entries are copied before they are sent: 64 KiB.
	minGather = 64 << 10
	// stepsPerFill bounds the steps of the keyspace in one turn of an event loop. Each step
	// copies 64 entries under a lock. These steps gather enough, unless entries are very small.
	stepsPerFill = 64
)

// fullSync is the remaining part of a full resynchronization. It proceeds in rounds: a round
// copies some keys, sends them in blocks, and then sends the stream up to the present. So a key
// in a block is newer than the stream before it. The stream after the block may contain effects
// that the key already has. That does no harm in the end, because effects are absolute.
type fullSync struct {
	steps    *keyspace.Steps
	blocks   *persistence.Blocks
	gathered int  // bytes of entries that were copied in this round
	sending  bool // the copied entries are being sent
	copied   bool // there are no more keys to copy
	kept     bool // long-running commands held all keys that the last call tried to copy
	// due is the offset up to which the stream is sent before the next round or the end. It does
	// not change while keys are copied but not sent.
	due          uint64
	keys, number uint64 // of the blocks that have been made
}

func newFullSync(ks *keyspace.Keyspace, offset uint64) *fullSync {
	f := &fullSync{blocks: persistence.NewBlocks(), due: offset}
	f.steps = ks.Steps(func(db int, key []byte, e entry.Entry) {
		f.gathered += len(key) + len(e.Value)
		f.blocks.Add(db, key, e)
	})
	return f
}

// next returns the payload of the next block, which is valid until the next call. There is none
// at the end of a round, when the stream is to be sent, nor when it has taken all *steps; it
// decrements *steps for each. It never blocks, because an event loop calls it, which serves other
// clients too.
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

// done reports whether there are no more blocks.
func (f *fullSync) done() bool { return f.steps == nil }

// close abandons the keys that are not copied yet.
func (f *fullSync) close() {
	if f.steps != nil {
		f.steps.Close()
		f.steps, f.blocks = nil, nil
	}
}
