package states

import (
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/ban"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

const epoch = limit.Instant(1_800_000_000e9)

// program is a program without an answer, whose parts have digits as keys.
type program func(func(*decide.Ask)) error

func (p program) Run(decide func(*decide.Ask)) error { return p(decide) }

func (program) Guessed() bool { return true }

func (program) Number(key []byte) (uint8, bool) { return key[0] - '0', true }

// state is a state on which joint asks are decided.
type state struct{ entry entry.Entry }

func (s *state) decide(t testing.TB, a *decide.Ask, now limit.Instant, most int) (changed bool) {
	t.Helper()
	var parts decide.Parts
	e := s.entry
	if e.Expiry <= now {
		e = entry.Entry{}
	}
	if a.Err = Decide(&parts, a, &e, now, most); a.Err != nil || !parts.Changed {
		return false
	}
	s.entry = EntryOf(&parts.State, nil)
	return true
}

func mustHex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(tb, err)
	return b
}

// perHour is a quota whose units come back after an hour.
func perHour(t testing.TB, most int64) gcra.Quota {
	t.Helper()
	q, err := gcra.NewQuota(most-1, 1, 3600)
	require.NoError(t, err)
	return q
}

// someParts returns parts of several kinds, one of which remembers a call and has a reservation.
func someParts(t testing.TB) []decide.Part {
	all := decide.Parts{State: decide.State{Most: 1 << 20}}
	p := program(func(ask func(*decide.Ask)) error {
		w := slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 9, Window: 1e9, Quantity: 1}
		b := tokenbucket.Call{Mode: tokenbucket.Greedy, Capacity: 9, Init: 9, Count: 1, Period: 1e9, Interval: 1e9, Quantity: 1}
		id := idempotency.Call{Token: []byte("t"), TTL: 1e9, Max: 2, Seed: 1}
		for _, a := range []*decide.Ask{
			{Family: decide.Window, Key: []byte("1"), Window: w},
			{Family: decide.Bucket, Key: []byte("2"), Bucket: b, ID: id, Reserve: reservation.Terms{TTL: 1e9, Max: 1}},
			{Family: decide.Window, Key: []byte("3"), Window: w, ID: id},
			{Family: decide.Cell, Key: []byte("4"), Quota: perHour(t, 3), Quantity: 1},
			{Family: decide.Cell, Key: []byte("5"), Quota: perHour(t, 3), Quantity: 1, ID: id},
		} {
			ask(a)
			require.NoError(t, a.Err)
		}
		bans := ban.Call{Refusals: 9, Window: time.Hour, Block: time.Minute, Factor: ban.Whole, Max: time.Minute}
		ask(&decide.Ask{Family: decide.Ban, Key: []byte("7"), Denied: true, Bans: &bans})
		return nil
	})
	require.NoError(t, all.Run(&decide.Ask{Family: decide.Joint, Program: p}, epoch))
	require.Len(t, all.All, 6)
	return all.All
}

// TestGoldenBytesOfParts: servers of all versions share the values in the engine, so their format never changes.
func TestGoldenBytesOfParts(t *testing.T) {
	raw, expiry := appendParts(nil, []decide.Part{
		{Number: 1, Entry: entry.Entry{Kind: entry.Cell, Expiry: 0x1122334455667788}},
		{Number: 129, Entry: entry.Entry{Kind: entry.OfWindow(slidingwindow.Fixed), Expiry: 9, Value: mustHex(t,
			"0100000000000000"+"0200000000000000"+"0300000000000000")}},
	})
	require.Equal(t, limit.Instant(0x1122334455667788), expiry)
	require.Equal(t, ""+
		"01"+"02"+"1122334455667788"+"00000000"+
		"81"+"12"+"0000000000000009"+"00000018"+"010000000000000002000000000000000300000000000000", hex.EncodeToString(raw))
}

// TestAFirstPartAloneIsAPlainEntry: it is stored as its own kind, and read as the first part again. Any other part is not, nor
// one with reservations, whose links lead to parts of other states.
func TestAFirstPartAloneIsAPlainEntry(t *testing.T) {
	for _, one := range normal(someParts(t)) {
		s := decide.State{All: []decide.Part{one}}
		e := EntryOf(&s, nil)
		require.NoError(t, Check(&e))
		require.Equal(t, one.Number != 1 || one.Entry.Kind.Remembers(), e.Kind == Joint)
		var again decide.State
		load(&again, &e, epoch, 1<<10)
		require.Equal(t, s.All, normal(again.All))
	}
}

func TestPartsAreEncodedAndDecoded(t *testing.T) {
	all := normal(someParts(t))
	raw, expiry := appendParts([]byte("before")[:0], all)
	require.NoError(t, checkParts(raw))
	require.Equal(t, all, normal(AppendLive(nil, raw, epoch)))
	latest := limit.MinInstant
	for i := range all {
		latest = max(latest, all[i].Entry.Expiry)
	}
	require.Equal(t, latest, expiry)
	require.Empty(t, AppendLive(nil, raw, expiry))
	require.NotEmpty(t, AppendLive(nil, raw, expiry-1))
}

// normal returns all with nil for each value without bytes.
func normal(all []decide.Part) []decide.Part {
	for i := range all {
		if e := &all[i].Entry; len(e.Value) == 0 {
			e.Value = nil
		}
	}
	return all
}

// TestForeignBytesAreNoParts: bytes that no server has written have the wrong type.
func TestForeignBytesAreNoParts(t *testing.T) {
	all := someParts(t)
	raw, _ := appendParts(nil, all)
	for n := range raw {
		if checkParts(raw[:n]) == nil {
			require.True(t, slices.ContainsFunc(ends(raw), func(end int) bool { return end == n }), "cut at %d", n)
		}
	}
	of := func(change func(all []decide.Part) []decide.Part) []byte {
		raw, _ := appendParts(nil, change(slices.Clone(all)))
		return raw
	}
	kind := func(k entry.Kind) []byte {
		return of(func(all []decide.Part) []decide.Part { all[0].Entry.Kind = k; return all })
	}
	for name, raw := range map[string][]byte{
		"nothing":            {},
		"a number":           []byte("1700000000000000000"),
		"no order":           of(func(all []decide.Part) []decide.Part { all[0], all[1] = all[1], all[0]; return all }),
		"twice":              of(func(all []decide.Part) []decide.Part { all[1].Number = 1; return all }),
		"the number 0":       of(func(all []decide.Part) []decide.Part { all[0].Number = 0; return all }),
		"no kind":            kind(entry.None),
		"a string":           kind(entry.String),
		"a hash":             kind(entry.Hash),
		"a joint state":      kind(Joint),
		"a kind to come":     kind(200),
		"a ban":              kind(entry.Ban),
		"records of nothing": kind(entry.OfWindow(slidingwindow.Fixed).Remembering()),
		"records of a ban":   kind(entry.Ban.Remembering()),
		"a cell's records":   kind(entry.Cell.Remembering()),
		"more":               append(slices.Clone(raw), 0),
	} {
		require.ErrorIs(t, checkParts(raw), limit.ErrWrongType, name)
		require.ErrorIs(t, Check(&entry.Entry{Kind: Joint, Value: raw}), limit.ErrWrongType, name)
	}
}

// ends returns the offsets in raw at which a part ends.
func ends(raw []byte) (all []int) {
	for rest := raw; len(rest) > 0; {
		_, rest, _ = nextPart(rest)
		all = append(all, len(raw)-len(rest))
	}
	return all
}

// FuzzParts: any bytes are refused, or are parts that can be decided and encoded again.
func FuzzParts(f *testing.F) {
	all := someParts(f)
	raw, _ := appendParts(nil, all)
	f.Add(raw, uint8(0))
	for i := range all {
		one, _ := appendParts(nil, all[i:i+1])
		f.Add(one, uint8(i))
	}
	f.Fuzz(func(t *testing.T, raw []byte, n uint8) {
		if err := checkParts(raw); err != nil {
			return
		}
		was := slices.Clone(raw)
		all := AppendLive(nil, raw, limit.MinInstant)
		again, expiry := appendParts(nil, all)
		if len(all) == len(ends(raw)) {
			require.Equal(t, raw, again)
		}
		s := state{entry.Entry{Kind: Joint, Expiry: max(expiry, epoch+1), Value: raw}}
		key := []byte{'0' + 1 + n%7}
		p := program(func(ask func(*decide.Ask)) error {
			w := slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 9, Window: 1e9, Quantity: 1}
			b := tokenbucket.Call{Mode: tokenbucket.Greedy, Capacity: 9, Init: 9, Count: 1, Period: 1e9, Interval: 1e9, Quantity: 1}
			id := idempotency.Call{Token: []byte("u"), TTL: 1e9, Max: 2, Seed: 1}
			for _, a := range []*decide.Ask{
				{Family: decide.Window, Key: key, Window: w},
				{Family: decide.Bucket, Key: key, Bucket: b, ID: id, Reserve: reservation.Terms{TTL: 1e9, Max: 1}},
				{Family: decide.Window, Key: key, Window: w, ID: id},
				{Family: decide.Several, Clauses: []decide.Clause{{Key: key, Bucket: &b}}, Details: make([]limit.Decision, 1), ID: id},
				{Family: decide.Cell, Key: key, Quota: perHour(t, 3), Quantity: 1},
			} {
				ask(a)
			}
			return nil
		})
		if a := (&decide.Ask{Family: decide.Joint, Program: p}); s.decide(t, a, epoch, 1<<20) && s.entry.Kind != entry.None {
			require.NoError(t, Check(&s.entry))
		}
		require.Equal(t, was, raw)
	})
}

// TestPartsExpire: a part is gone at its expiry, and the state with the last part.
func TestPartsExpire(t *testing.T) {
	var s state
	of := func(part string, units int64, window time.Duration) *decide.Ask {
		p := program(func(ask func(*decide.Ask)) error {
			a := &decide.Ask{Family: decide.Window, Key: []byte(part), Window: slidingwindow.Call{
				Mode: slidingwindow.Fixed, Limit: 9, Window: window, Quantity: units,
			}}
			ask(a)
			return a.Err
		})
		return &decide.Ask{Family: decide.Joint, Program: p}
	}
	require.True(t, s.decide(t, of("1", 1, time.Second), epoch, 1000))
	require.Equal(t, epoch.Add(time.Second), s.entry.Expiry)
	require.True(t, s.decide(t, of("2", 1, time.Hour), epoch, 1000))
	require.Equal(t, epoch.Add(time.Hour), s.entry.Expiry)
	require.Len(t, AppendLive(nil, s.entry.Value, epoch), 2)
	require.False(t, s.decide(t, of("1", 0, time.Second), epoch.Add(time.Second), 1000), "what has expired is not written again")
	require.True(t, s.decide(t, of("3", 1, 2*time.Second), epoch.Add(time.Second), 1000))
	all := AppendLive(nil, s.entry.Value, limit.MinInstant)
	require.Len(t, all, 2)
	require.EqualValues(t, 3, all[1].Number)
	require.True(t, s.decide(t, of("2", -1, time.Hour), epoch.Add(2*time.Second), 1000))
	require.Equal(t, entry.Entry{}, s.entry, "nothing is left")
	require.False(t, s.decide(t, of("2", -1, time.Hour), epoch.Add(2*time.Second), 1000))
}
