package session

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/limit"
)

// TestOutboxKeepsOrderAndAccounts: for any sequence of messages and partial takes, each outbox
// returns the bytes in order, and the counted memory is the memory in use.
func TestOutboxKeepsOrderAndAccounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		boxes := make([]outbox, 3)
		want := make([]bytes.Buffer, len(boxes))
		memory := 0
		var kept []*command.SharedFrame
		t.Repeat(map[string]func(*rapid.T){
			"a message for each": func(t *rapid.T) {
				b := bytes.Repeat([]byte{byte('a' + len(kept)%26)}, rapid.SampledFrom([]int{1, 60, command.SharedFrom, 3 * maxPart}).Draw(t, "length"))
				var f *command.SharedFrame
				if rapid.Bool().Draw(t, "shared") {
					f = &command.SharedFrame{Bytes: b}
					f.Refs.Store(1)
					memory += len(b)
					kept = append(kept, f)
				}
				for i := range boxes {
					memory += boxes[i].add(b, f)
					want[i].Write(b)
				}
				if f != nil && f.Refs.Add(-1) == 0 {
					memory -= len(b)
				}
			},
			"take": func(t *rapid.T) {
				i := rapid.IntRange(0, len(boxes)-1).Draw(t, "box")
				most := rapid.SampledFrom([]int{1, 100, maxPart, 1 << 20}).Draw(t, "most")
				got, freed := boxes[i].take(nil, most)
				memory -= freed
				require.Equal(t, string(want[i].Next(most)), string(got))
			},
			"close": func(t *rapid.T) {
				i := rapid.IntRange(0, len(boxes)-1).Draw(t, "box")
				if rapid.IntRange(0, 9).Draw(t, "luck") == 0 {
					memory -= boxes[i].close()
					want[i].Reset()
				}
			},
			"": func(t *rapid.T) {
				left := 0
				for i := range boxes {
					require.Equal(t, want[i].Len(), boxes[i].size)
					left += want[i].Len()
				}
				require.GreaterOrEqual(t, memory, 0)
				if left == 0 {
					require.Zero(t, memory)
				}
			},
		})
		for i := range boxes {
			memory -= boxes[i].close()
		}
		require.Zero(t, memory)
		for _, f := range kept {
			require.Zero(t, f.Refs.Load())
		}
	})
}

// TestOutboxIsBounded: the limit is exceeded at once above the hard limit, and after a time above
// the soft one. If a client gets below it in between, the time starts again.
func TestOutboxIsBounded(t *testing.T) {
	l := &env.OutputLimit{Hard: 1000, Soft: 100, For: 10 * time.Second}
	at := func(s int) limit.Instant { return limit.Instant(s) * limit.Instant(time.Second) }
	for name, c := range map[string]struct {
		sizes []int // one per second
		over  []bool
	}{
		"hard":           {[]int{999, 1000}, []bool{false, true}},
		"soft":           {[]int{99, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100}, []bool{11: false, 12: true}},
		"soft, anew":     {[]int{100, 100, 100, 100, 100, 100, 99, 100, 100, 100, 100, 100, 100, 100}, make([]bool, 14)},
		"below for ever": {[]int{99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99}, make([]bool, 14)},
	} {
		o := outbox{}
		for i, size := range c.sizes {
			o.size = size
			require.Equal(t, c.over[i], o.over(l, at(i)), "%s: second %d", name, i)
		}
	}
	none := &env.OutputLimit{}
	require.False(t, (&outbox{size: 1 << 40}).over(none, at(100)))
	require.False(t, none.MayBeOver(1<<40))
}
