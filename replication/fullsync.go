package replication

import (
	"fmt"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/persistence"
)

const (
	// gatherLeast is about how many bytes of entries are copied before they are sent.
	gatherLeast = 64 << 10
	// stepsPerFill bounds the steps of the keyspace in one turn of a loop, each of which is
	// 64 entries under a lock: they gather enough, unless entries are very small.
	stepsPerFill = 64
)

// fullSync is the part of a full sync that is to come. It goes in rounds: some keys are
// copied, they are sent in blocks, and then the stream up to the present. So a key in a block
// is newer than the stream before it. The stream behind it may be older, which changes
// nothing in the end, since effects are absolute.
type fullSync struct {
	steps    *keyspace.Steps
	blocks   *persistence.Blocks
	gathered int  // bytes of entries that have been copied in this round
	sending  bool // they are being sent
	copied   bool // there are no more keys to copy
	kept     bool // a command that takes long had all keys that were tried
	// due is the offset up to which the stream comes before what is next: a round or the
	// end. While keys are copied and not sent it stays.
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

// next returns the payload of the next block, valid until the next call. There is none at
// the end of a round, when the stream is to be sent, and when that many steps were taken,
// which are subtracted. It waits for nobody: a loop calls it, which has other clients.
func (f *fullSync) next(steps *int) (payload []byte, round bool, err error) {
	f.kept = !f.sending
	for ; *steps > 0 && !f.sending; *steps-- {
		done, more, err := f.steps.Next(false)
		if err != nil {
			return nil, false, fmt.Errorf("copying keys: %w", err)
		}
		f.kept = f.kept && !done
		f.copied = !more
		f.sending = f.copied || f.gathered >= gatherLeast
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

// done reports whether there is no block any more.
func (f *fullSync) done() bool { return f.steps == nil }

// close gives up what is left to copy.
func (f *fullSync) close() {
	if f.steps != nil {
		f.steps.Close()
		f.steps, f.blocks = nil, nil
	}
}
