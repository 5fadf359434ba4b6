package records_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/remote/records"
)

func TestVersionIsReadAsItWasWritten(t *testing.T) {
	for text, want := range map[string]records.Version{
		"":                                  {},
		"1 00000000000000ff":                {Number: 1, ID: 255},
		"9007199254740990 ffffffffffffffff": {Number: 1<<53 - 2, ID: 1<<64 - 1},
	} {
		v, err := records.ParseVersion(text)
		require.NoError(t, err, text)
		require.Equal(t, want, v)
		require.Equal(t, text, v.String())
	}
	for _, text := range []string{
		"x", "1", "1 ", "1 ff", "0 00000000000000ff", "-1 00000000000000ff", "+1 00000000000000ff", "01 00000000000000ff",
		"1 00000000000000FF", "1 0000000000000000", "1  0000000000000ff", "9007199254740991 00000000000000ff",
		"1 00000000000000ff ", "1 00000000000000ff1", "99999999999999999999 00000000000000ff",
	} {
		_, err := records.ParseVersion(text)
		require.Error(t, err, text)
	}
}

func TestChangeIsReadAsItWasWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		c := records.Change{ID: 1 + rng.Uint64()>>1, Previous: rng.Uint64(), Millis: rng.Int64() - rng.Int64(), Whole: rng.IntN(4) == 0}
		var pairs [][]byte
		for range 2 * rng.IntN(5) {
			b := make([]byte, rng.IntN(30))
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			if !c.Whole {
				pairs = append(pairs, b)
				c.Pairs = append(c.Pairs, string(b))
			}
		}
		got, err := records.ParseChange(c.Head() + string(records.PairsOf(pairs)))
		require.NoError(t, err)
		require.Equal(t, c, got)
	}
	sound := records.Change{ID: 1}.Head()
	for _, text := range []string{
		"", sound[:31], strings.Repeat("0", 32) + "0+", strings.Repeat("F", 32) + "0+", sound[:32], sound[:32] + "+", sound[:32] + "x+",
		sound + "1:a", sound + "1:a1:", sound + "01:a1:b", sound + "1:a1:b-", sound + "-1:a1:b", sound + "99999999999:a1:b",
		sound[:33] + "!1:a1:b",
	} {
		_, err := records.ParseChange(text)
		require.Error(t, err, "%q", text)
	}
}

// FuzzReplies parses bytes of the engine, which may be any.
func FuzzReplies(f *testing.F) {
	f.Add("1 00000000000000ff", "1700000000", "123", "ok", 2)
	f.Add("", "256", "0", "reload", 1)
	f.Add(records.Change{ID: 3, Previous: 2}.Head()+"1:a0:", "1", "1", "x", 0)
	f.Fuzz(func(t *testing.T, a, b, c, d string, n int) { parseAll(a, b, c, d, n) })
}

// TestAnyBytesAreAnErrorOrValid parses random bytes, and sound entries with a few other bytes.
func TestAnyBytesAreAnErrorOrValid(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	sound := []string{
		records.Version{Number: 5, ID: 9}.String(),
		records.Change{ID: 5, Previous: 4, Millis: 77}.Head() + string(records.PairsOf([][]byte{[]byte("k"), []byte("v")})),
	}
	text := func() string {
		b := []byte(sound[rng.IntN(len(sound))])
		if rng.IntN(3) == 0 {
			b = make([]byte, rng.IntN(80))
		}
		for range rng.IntN(4) {
			if len(b) > 0 {
				b[rng.IntN(len(b))] = "0123456789:+!f \x00\xff"[rng.IntN(17)]
			}
		}
		return string(b)
	}
	for range 20_000 {
		parseAll(text(), text(), text(), text(), rng.IntN(8))
	}
	for _, reply := range []any{nil, int64(1), "x", []any{}, []any{nil}, []any{"", "1", "2", nil}, []any{"", "1", "1000000", "ok"}, []any{"bad", "1", "1", "ok"}} {
		for _, err := range records.ParseReplies(reply)[:3] {
			require.Error(t, err, "%v", reply)
		}
	}
	for _, err := range records.ParseReplies([]any{"bad", "1", "1", "ok"})[:1] {
		require.ErrorContains(t, err, "{policies}:head", "the error names the record")
	}
}

func parseAll(a, b, c, d string, n int) {
	_, _ = records.ParseVersion(a)
	_, _ = records.ParseChange(a)
	all := []any{a, b, c, d, a, b, c, d}
	_ = records.ParseReplies(all[:max(0, min(n, len(all)))])
	_ = records.ParseReplies(a)
}
