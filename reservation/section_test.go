package reservation_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
)

const second = limit.Instant(time.Second)

func hash(id string) idempotency.Hash {
	return (&idempotency.Call{Token: []byte(id)}).Hash(1)
}

// TestTATIsThatOfTheSettledCharges checks the two examples of a bucket whose reservation is settled with
// less, of ten tokens a second.
func TestTATIsThatOfTheSettledCharges(t *testing.T) {
	const each = time.Second / 10
	for _, c := range []struct {
		name      string
		actual    int64
		later     func(s *reservation.Section)
		from, tat limit.Instant
	}{
		{"nothing since", 3, func(*reservation.Section) {}, 108 * second / 10, 103 * second / 10},
		{"a charge since", 3, func(s *reservation.Section) {
			s.Charged(10*second+second/2, 108*second/10, 110*second/10)
		}, 110 * second / 10, 107 * second / 10}, // it began at 10.5 s, when the 3 had come back
		{"cancelled after it was full", 0, func(s *reservation.Section) {
			s.Charged(20*second, 108*second/10, 201*second/10)
		}, 201 * second / 10, 201 * second / 10},
		{"a refund since", 3, func(s *reservation.Section) {
			s.Charged(10*second, 108*second/10, 107*second/10)
		}, 107 * second / 10, 102 * second / 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s reservation.Section
			s.Load(nil)
			s.Start = 10 * second
			h := reservation.HoldTokens(10*second, 8)
			h.Hash = hash("a")
			s.Add(&h)
			c.later(&s)
			require.Equal(t, c.from, s.TAT(each))
			at, found := s.Find(hash("a"))
			require.True(t, found)
			s.SettleTokens(at, c.actual, each)
			require.Equal(t, c.tat, s.TAT(each))
			require.Zero(t, s.Live())
		})
	}
}

func TestRescaledReservationsStandForTheSameTokens(t *testing.T) {
	var s reservation.Section
	s.Load(nil)
	s.Start = 10 * second
	h := reservation.HoldTokens(10*second, 8)
	s.Add(&h)
	require.Equal(t, 18*second, s.TAT(time.Second))
	s.Rescale(12*second, time.Second, 2*time.Second)
	require.Equal(t, 24*second, s.TAT(2*time.Second), "six tokens of two seconds from 12 s on")
	s.SettleTokens(0, 4, 2*time.Second)
	require.Equal(t, 16*second, s.TAT(2*time.Second), "two tokens")
}

// random returns a section after n random operations, and the deltas of all of them.
func random(r *rand.Rand, n int, form reservation.Form) (s *reservation.Section, deltas [][]byte) {
	s = new(reservation.Section)
	s.Load(nil)
	s.Memory, s.MaxCalls, s.Seed = 5*time.Second, 10, 5
	now := limit.Instant(0)
	for range n {
		before := s.Append(nil)
		now += limit.Instant(r.Int64N(int64(second)))
		switch r.IntN(5) {
		case 0, 1:
			h := reservation.HoldTokens(now, 1+r.Int64N(9))
			if form == reservation.Window {
				h = reservation.HoldUnits(now, 1+r.Int64N(9))
			}
			h.Hash, h.End, h.Print = hash(string(rune('a'+r.IntN(26)))), now+5*second, r.Uint32()
			if r.IntN(3) == 0 {
				h.Missing = 3
			}
			if r.IntN(2) == 0 {
				h.Part = reservation.Part{Index: 1, Of: 2, Calls: r.IntN(2) == 0, Member: make([]byte, r.IntN(40))}
			}
			s.Add(&h)
			if r.IntN(3) == 0 {
				keys := make([][]byte, r.IntN(4))
				for i := range keys {
					keys[i] = make([]byte, r.IntN(200))
				}
				s.AddLink(&reservation.Link{Hash: h.Hash, Print: h.Print, Keys: keys})
			}
		case 2:
			if form == reservation.Window {
				s.TakeHeld(3, func(_ limit.Instant, n int64) int64 { return n })
			} else {
				s.Charged(now, now, now+second)
			}
		case 3:
			if at, found := s.Find(hash(string(rune('a' + r.IntN(26))))); found && form == reservation.Window {
				s.SettleUnits(at, 1)
			} else if found {
				s.SettleTokens(at, 1, time.Second)
			}
			s.EndLink(hash(string(rune('a' + r.IntN(26)))))
		default:
			s.Lapse(now, form == reservation.Bucket, func(*reservation.Hold) {})
		}
		delta, _ := s.AppendDelta(nil, before)
		deltas = append(deltas, delta)
	}
	return s, deltas
}

// TestNumbersStartAgain makes reservations while one of them stays for so many others that the numbers would no
// longer be comparable.
func TestNumbersStartAgain(t *testing.T) {
	var s reservation.Section
	s.Load(nil)
	s.MaxCalls = 1
	s.Add(&reservation.Hold{Hash: hash("first"), Ready: limit.MinInstant})
	value := s.Append(nil)
	binary.LittleEndian.PutUint32(value[len(value)-8:], 1<<30)
	_, _, err := reservation.Check(value, reservation.Window)
	require.NoError(t, err)
	s.Load(value)
	s.Add(&reservation.Hold{Hash: hash("second"), Ready: limit.MinInstant})
	_, ok := s.AppendDelta(nil, value)
	require.False(t, ok, "the others have new numbers")
	renumbered := s.Append(nil)
	_, _, err = reservation.Check(renumbered, reservation.Window)
	require.NoError(t, err)
	s.Load(renumbered)
	s.Add(&reservation.Hold{Hash: hash("third"), Ready: limit.MinInstant})
	_, ok = s.AppendDelta(nil, renumbered)
	require.True(t, ok)
	binary.LittleEndian.PutUint32(value[len(value)-8:], 1<<30+1)
	_, _, err = reservation.Check(value, reservation.Window)
	require.Error(t, err)
}

// TestDeltas applies the deltas of random operations to the first section, and once more to the last one.
func TestDeltas(t *testing.T) {
	for seed := range uint64(200) {
		form := reservation.Window + reservation.Form(seed%2)
		s, deltas := random(rand.New(rand.NewPCG(seed, 1)), 60, form)
		want := s.Append(nil)
		var copied reservation.Section
		copied.Load(nil)
		copied.Seed = s.Seed
		for range 2 {
			for _, d := range deltas {
				delta, rest, err := reservation.ReadDelta(append(d, "behind"...), form)
				require.NoError(t, err)
				require.Equal(t, "behind", string(rest))
				if value := copied.Append(nil); !copied.ApplyDelta(delta, form) {
					copied.Load(value)
				}
				_, _, err = reservation.Check(copied.Append(nil), form)
				require.NoError(t, err)
			}
			require.Equal(t, want, copied.Append(nil), "seed %d", seed)
		}
	}
}

func TestAHoldIsReadAsItWasAdded(t *testing.T) {
	for _, want := range []reservation.Hold{
		{Units: 3, Back: 2, Ready: limit.MinInstant},
		{Units: 3, Missing: 4, Ready: 9, Variant: true, Print: 8, End: 7, At: 6},
		{Units: 1, Ready: limit.MinInstant, Part: reservation.Part{Index: 1, Of: 3, Calls: true}},
		{Units: 1, Missing: 1, Ready: limit.MinInstant, Part: reservation.Part{Of: 1, Member: []byte("a member of 24 characters")}},
	} {
		var s reservation.Section
		s.Load(nil)
		want.Hash = hash("a")
		s.Add(&want)
		s.Add(&reservation.Hold{Hash: hash("b"), Ready: limit.MinInstant})
		at, found := s.Find(hash("a"))
		require.True(t, found)
		got := s.At(at)
		require.Equal(t, want.Part, got.Part)
		r, q := want.Record(idempotency.Lapsed, 5), got.Record(idempotency.Lapsed, 5)
		require.Equal(t, r, q)
		require.Equal(t, want.Part.Calls, reservation.PartOf(&q).Calls)
		require.Equal(t, want.Part.Index, reservation.PartOf(&q).Index)
		require.Equal(t, want.Part.Of, reservation.PartOf(&q).Of)
		require.Equal(t, []any{want.Units, want.Back, want.Missing, want.Ready, want.End, want.At}, []any{got.Units, got.Back, got.Missing, got.Ready, got.End, got.At})
		_, found = s.Find(hash("b"))
		require.True(t, found)
		require.Equal(t, 2, s.Live())
	}
}

// TestLinks: a link is found by its token, is no reservation, and is kept as long as its reservation is
// remembered.
func TestLinks(t *testing.T) {
	var s reservation.Section
	s.Load(nil)
	s.Memory, s.MaxCalls = time.Minute, 10
	names := [][]byte{[]byte("b"), {}, bytes.Repeat([]byte("c"), 300)}
	add := func(id string, until limit.Instant, keys [][]byte) {
		s.Add(&reservation.Hold{Hash: hash(id), End: until, Units: 1, Back: 1, Ready: limit.MinInstant, Part: reservation.Part{Of: 1, Linked: true}})
		s.AddLink(&reservation.Link{Hash: hash(id), Print: 7, Keys: keys})
	}
	add("r1", 10*second, names)
	add("r2", 10*second, names)
	value := s.Append(nil)
	_, _, err := reservation.Check(value, reservation.Window)
	require.NoError(t, err)
	s.Load(value)
	require.Equal(t, 2, s.Live())
	require.EqualValues(t, 2, s.Units())
	require.Equal(t, 10*second, s.NextEnd())
	at, print, found := s.FindLink(hash("r1"))
	require.True(t, found)
	require.EqualValues(t, 7, print)
	require.Equal(t, names, s.Keys(at, nil))
	linked := func(id string) bool {
		_, _, found := s.FindLink(hash(id))
		return found
	}
	require.False(t, linked("r3"))

	at, _ = s.Find(hash("r1"))
	s.Renew(at, 5*second, 20*second)
	ended := 0
	lapse := func(now limit.Instant) { s.Lapse(now, false, func(*reservation.Hold) { ended++ }) }
	require.False(t, s.Due(9*second))
	require.True(t, s.Due(10*second))
	lapse(10 * second)
	lapse(20 * second)
	require.Equal(t, 2, ended)
	require.Equal(t, limit.MaxInstant, s.NextEnd())
	require.Zero(t, s.Live())
	require.False(t, s.Due(69*second))
	require.True(t, s.Due(70*second))
	lapse(70 * second)
	require.False(t, linked("r2"), "it is forgotten a minute after its end")
	require.True(t, linked("r1"))
	lapse(80 * second)
	require.False(t, linked("r1"))
	add("r3", 90*second, nil)
	at, _, found = s.FindLink(hash("r3"))
	require.True(t, found)
	require.Empty(t, s.Keys(at, nil))
	lapse(200 * second)
	require.False(t, linked("r3"), "it is forgotten at once")
	add("r3", 300*second, names)
	s.Add(&reservation.Hold{Hash: hash("r3"), End: 300 * second, Ready: limit.MinInstant})
	require.False(t, linked("r3"), "another reservation has its id now")

	for i := range 1200 {
		add(fmt.Sprint("many", i), 400*second+limit.Instant(i), names[:1])
	}
	lapse(400*second + 1100)
	require.False(t, linked("many100"), "the oldest are forgotten")
	require.True(t, linked("many101"))
	require.True(t, linked("many1199"), "it is live")
	lapse(405 * second)
	require.False(t, linked("many199"))
	require.True(t, linked("many200"))
	require.True(t, linked("many1199"))
	_, _, err = reservation.Check(s.Append(nil), reservation.Window)
	require.NoError(t, err)

	many := make([][]byte, reservation.MaxKeys)
	require.NoError(t, reservation.CheckKeys(many))
	require.ErrorIs(t, reservation.CheckKeys(append(many, nil)), reservation.ErrKeys)
	require.ErrorIs(t, reservation.CheckKeys([][]byte{make([]byte, reservation.MaxKeyBytes), {1}}), reservation.ErrKeys)
}

// FuzzSection reads any bytes as a value with reservations, and any as a delta. What is accepted can be used, and
// stays valid.
func FuzzSection(f *testing.F) {
	for form := reservation.Window; form <= reservation.Converted; form++ {
		s, deltas := random(rand.New(rand.NewPCG(uint64(form), 2)), 20, form)
		if form == reservation.Converted {
			s.Void()
		}
		f.Add(byte(form), s.Append([]byte("state")), deltas[len(deltas)-1], int64(5*second))
		f.Add(byte(form), s.Append(nil), deltas[0], int64(0))
	}
	f.Fuzz(func(t *testing.T, form byte, value, delta []byte, at int64) {
		is := reservation.Form(form)
		if is < reservation.Window || is > reservation.Converted || !reservation.Marked(value) {
			return
		}
		rest, records, err := reservation.Check(value, is)
		if err != nil {
			return
		}
		before, section, with := reservation.Split(value)
		require.Equal(t, rest, before)
		require.Equal(t, records, with)
		var s reservation.Section
		s.Load(section)
		require.Equal(t, section, s.Append(nil))
		if d, _, err := reservation.ReadDelta(delta, is); err == nil {
			if !s.ApplyDelta(d, is) {
				return
			}
		}
		now := limit.Instant(at)
		if is == reservation.Window {
			require.GreaterOrEqual(t, s.HeldFrom(limit.MinInstant)(limit.MinInstant, limit.MaxInstant), int64(0))
			s.TakeHeld(at, func(_ limit.Instant, n int64) int64 { return n })
		} else {
			s.Rescale(now, time.Second, 3)
			s.Charged(now, now, now.Add(5))
			s.Charged(now, now.Add(time.Hour), now)
			_ = s.TAT(time.Second)
		}
		if at, _, found := s.FindLink(hash("a")); found {
			require.Less(t, len(s.Keys(at, nil)), reservation.MaxKeys)
		}
		s.EndLink(hash("a"))
		s.AddLink(&reservation.Link{Hash: hash("a"), Keys: [][]byte{delta[:min(len(delta), 100)]}})
		s.Lapse(now, is == reservation.Bucket, func(h *reservation.Hold) { require.GreaterOrEqual(t, h.Returns(0), int64(0)) })
		if at, found := s.Find(hash("a")); found && is == reservation.Bucket {
			s.SettleTokens(at, 1, time.Second)
		}
		_, _, err = reservation.Check(s.Append(nil), is)
		require.NoError(t, err)
	})
}
