package collection_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/collection"
)

// value has the methods that all collections share.
type value interface {
	Load(flat []byte)
	Len() int
	Flat() (flat []byte, ok bool)
	AppendFlat(dst []byte) []byte
	Cost() int64
	Delta() []byte
	ResetDelta()
	Apply(delta []byte) error
}

// machine drives one collection and a model of it.
type machine interface {
	value() value
	// change makes the same change to both and compares the results.
	change(t *rapid.T)
	// compare compares everything that can be read.
	compare(t *rapid.T)
	check(flat []byte) error
	fresh() value
	// renew replaces the collection with a loaded copy.
	renew(flat []byte)
}

// run makes random changes, compares, and then replays the deltas on every earlier state.
func run(t *rapid.T, m machine) {
	var deltas, states [][]byte
	states = append(states, m.value().AppendFlat(nil))
	for range rapid.IntRange(1, 60).Draw(t, "changes") {
		m.change(t)
		m.compare(t)
		o := m.value()
		state := o.AppendFlat(nil)
		require.NoError(t, m.check(state))
		flat, small := o.Flat()
		if small {
			require.Equal(t, string(state), string(flat))
			require.Zero(t, o.Cost())
		} else {
			require.Positive(t, o.Cost())
		}
		require.Equal(t, o.Len() == 0, len(state) == 0)
		if rapid.Bool().Draw(t, "a command ends") {
			deltas = append(deltas, append([]byte(nil), o.Delta()...))
			states = append(states, state)
			o.ResetDelta()
			require.Empty(t, o.Delta())
			if rapid.IntRange(0, 3).Draw(t, "reload") == 0 {
				m.renew(state)
				m.compare(t)
				require.Equal(t, string(state), string(m.value().AppendFlat(nil)))
			}
		}
	}
	deltas = append(deltas, append([]byte(nil), m.value().Delta()...))
	final := m.value().AppendFlat(nil)
	states = append(states, final)
	for i, state := range states {
		o := m.fresh()
		o.Load(state)
		for range 2 {
			for _, delta := range deltas {
				require.NoError(t, o.Apply(delta))
			}
			require.Equal(t, string(final), string(o.AppendFlat(nil)), "all deltas over state %d of %d", i, len(states))
			require.Empty(t, o.Delta())
		}
	}
}

// drawElement draws one of a few elements, so that they repeat. Some are long, so that the number
// of bytes, too, makes a collection large.
func drawElement(t *rapid.T) []byte {
	n := rapid.IntRange(0, 99).Draw(t, "element")
	switch {
	case n == 0:
		return []byte{}
	case n > 95:
		return fmt.Appendf(nil, "%0*d", 300*(n-94), n)
	}
	return fmt.Appendf(nil, "e%d", n)
}

// drawBurst draws how often a change is repeated, so that collections grow and shrink across the
// boundary between the representations.
func drawBurst(t *rapid.T) int {
	return rapid.SampledFrom([]int{1, 1, 1, 2, 5, 40}).Draw(t, "times")
}

func TestHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run(t, &hashMachine{h: &collection.Hash{Max: drawMax(t)}, values: map[string]string{}})
	})
}

func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { run(t, &setMachine{s: &collection.Set{Max: drawMax(t)}}) })
}

func TestSortedSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run(t, &sortedMachine{s: &collection.SortedSet{Max: drawMax(t)}})
	})
}

func TestList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { run(t, &listMachine{l: &collection.List{Max: drawMax(t)}}) })
}

func drawMax(t *rapid.T) int { return rapid.SampledFrom([]int{0, 0, 3, 70}).Draw(t, "max") }

// TestDeltaWithFarBounds: a delta whose bounds are further apart than a list can be long is corrupt,
// even if their difference is not an int64.
func TestDeltaWithFarBounds(t *testing.T) {
	for _, bounds := range [][2]int64{{-1 << 62, 1 << 62}, {0, 1 << 32}, {1, 0}, {-1<<62 - 1, 0}, {0, 1<<62 + 1}} {
		for _, first := range []byte{0, 1} {
			delta := binary.LittleEndian.AppendUint64([]byte{first}, uint64(bounds[0]))
			delta = binary.LittleEndian.AppendUint64(delta, uint64(bounds[1]))
			require.ErrorIs(t, new(collection.List).Apply(delta), collection.ErrCorrupt, "%d", bounds)
		}
	}
}
