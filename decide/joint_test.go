package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
)

// program is a program whose parts have digits as keys.
type program func(func(*decide.Ask)) error

func (p program) Run(decide func(*decide.Ask)) error { return p(decide) }

func (program) Guessed() bool { return true }

func (program) Number(key []byte) (uint8, bool) { return key[0] - '0', key[0] < '5' }

// reserveOne returns an ask for a unit of the part, which is reserved.
func reserveOne(part, token string) *decide.Ask {
	return &decide.Ask{
		Family: decide.Window, Key: []byte(part), Reserve: reservation.Terms{TTL: time.Second, Max: 9},
		Window: slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 3, Window: time.Minute, Quantity: 1},
		ID:     idempotency.Call{Token: []byte(token), TTL: time.Minute, Max: 9, Seed: 1},
	}
}

// TestPartsOfAJoint: a run that fails leaves the parts, and their bytes, as they are.
func TestPartsOfAJoint(t *testing.T) {
	const now = limit.Instant(1_700_000_000e9)
	p := decide.Parts{State: decide.State{Most: 1 << 10}}
	run := func(f program) error {
		a := &decide.Ask{Family: decide.Joint, Program: f, Err: limit.ErrFull}
		err := p.Run(a, now)
		require.Equal(t, now, a.Now)
		require.NoError(t, a.Err, "which the caller sets")
		return err
	}
	require.Error(t, p.Run(&decide.Ask{Family: decide.Joint}, now))
	require.NoError(t, run(func(ask func(*decide.Ask)) error {
		for _, part := range []string{"4", "2", "3"} {
			ask(reserveOne(part, "t"))
		}
		return nil
	}))
	require.True(t, p.Changed)
	var numbers []uint8
	var was [][]byte
	for i := range p.All {
		numbers = append(numbers, p.All[i].Number)
		was = append(was, append([]byte{}, p.All[i].Entry.Value...))
	}
	require.Equal(t, []uint8{2, 3, 4}, numbers)
	before := p.All[0].Entry.Value
	require.ErrorIs(t, run(func(ask func(*decide.Ask)) error {
		for i, part := range []string{"1", "2", "3", "4"} {
			a := reserveOne(part, "u")
			ask(a)
			require.NoError(t, a.Err)
			require.Equal(t, i == 0, a.Decision.Remaining == 2)
		}
		a := reserveOne("5", "u")
		ask(a)
		require.Error(t, a.Err, "no part")
		a = reserveOne("2", "t")
		ask(a)
		require.NoError(t, a.Err)
		require.True(t, a.Repeats())
		return limit.ErrFull
	}), limit.ErrFull)
	require.False(t, p.Changed)
	require.Len(t, p.All, 3)
	for i := range p.All {
		require.Equal(t, was[i], p.All[i].Entry.Value)
	}
	require.NoError(t, run(func(ask func(*decide.Ask)) error {
		settled := &decide.Ask{
			Family: decide.Settle, Key: []byte("2"), ID: idempotency.Call{Token: []byte("t"), TTL: time.Minute, Max: 9},
			Settlement: reservation.Settlement{Op: reservation.Cancel},
		}
		ask(settled)
		require.NoError(t, settled.Err)
		require.Equal(t, reservation.Done, settled.Settled)
		return nil
	}))
	require.Equal(t, was[0], before, "a settlement in place changes its own copy")
	require.NotEqual(t, was[0], p.All[0].Entry.Value)
	p.Forget()
	require.Empty(t, p.All)
}

// TestPlansChangeOnlyTheBytesThatTheyGet: a plan is applied to a copy of the value that it was decided on, which stays as
// it is, also if the value has reservations and remembered calls.
func TestPlansChangeOnlyTheBytesThatTheyGet(t *testing.T) {
	const now = limit.Instant(1_700_000_000e9)
	var e entry.Entry
	for i, token := range []string{"a", "b", "", "c", "e", "d"} {
		at := now.Add(time.Duration(i) * 300 * time.Millisecond)
		a := reserveOne("1", token)
		if token == "" {
			a.ID.Token, a.Reserve.TTL = nil, 0
		}
		var own, copied decide.Plan
		mine := append([]byte{}, e.Value...)
		was := append([]byte{}, e.Value...)
		theirs := e
		require.NoError(t, copied.One(&e, at, a))
		theirs.Value = mine
		require.NoError(t, own.One(&theirs, at, a))
		if copied.Action != decide.Store {
			continue
		}
		got := copied.Apply(append([]byte{}, e.Value...), nil)
		require.Equal(t, was, append([]byte{}, e.Value...))
		require.Equal(t, own.Apply(mine, nil), got)
		e = entry.Entry{Kind: copied.Kind, Expiry: copied.Expiry, Value: got}
	}
	require.True(t, e.Kind.Remembers())
}

// TestAJointOwnsItsKey: copies of the ask share its program, which other families do not keep.
func TestAJointOwnsItsKey(t *testing.T) {
	key := []byte("key")
	none := program(func(func(*decide.Ask)) error { return nil })
	a := decide.Ask{Family: decide.Joint, Key: key, Program: none}
	a.Own(nil)
	key[0] = 'x'
	require.Equal(t, "key", string(a.Key))
	require.NotNil(t, a.Program)
	require.False(t, a.OnlyLooks())
	a.Family = decide.Cell
	a.Own(nil)
	require.Nil(t, a.Program)
	a.Program = none
	a.Forget()
	require.Nil(t, a.Program)
}

// spanning is a program about two states. The keys of the parts of the second begin with x.
type spanning struct{ program }

func (p spanning) Locate(key []byte) (state int, n uint8, ok bool) {
	switch key[0] {
	case 'x':
		n, ok = p.Number(key[1:])
		return 1, n, ok
	case 'y':
		return 2, 1, true
	}
	n, ok = p.Number(key)
	return 0, n, ok
}

// TestPartsOfSeveralStates: an ask may be about parts of several states, and changes all of them or none.
func TestPartsOfSeveralStates(t *testing.T) {
	const now = limit.Instant(1_700_000_000e9)
	p := decide.Parts{State: decide.State{Most: 1 << 10}, Others: []decide.State{{Most: 100, Each: 14}}}
	run := func(f program) error {
		a := &decide.Ask{Family: decide.Joint, Program: spanning{f}, Others: [][]byte{[]byte("second")}}
		return p.Run(a, now)
	}
	require.Error(t, p.Run(&decide.Ask{Family: decide.Joint, Program: spanning{}}, now), "the ask has one state")
	one := &decide.Ask{Family: decide.Joint, Program: program(nil), Others: [][]byte{[]byte("second")}}
	require.Error(t, p.Run(one, now), "the program has one state")
	all := func(limits int64, keys ...string) *decide.Ask {
		a := &decide.Ask{Family: decide.Several, Details: make([]limit.Decision, len(keys))}
		for _, key := range keys {
			w := slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: limits, Window: time.Minute, Quantity: 1}
			a.Clauses = append(a.Clauses, decide.Clause{Key: []byte(key), Window: &w})
		}
		return a
	}
	require.NoError(t, run(func(ask func(*decide.Ask)) error {
		a := all(2, "1", "x1")
		ask(a)
		require.NoError(t, a.Err)
		require.False(t, a.Refused)
		b := all(2, "x1", "x2")
		ask(b)
		require.Equal(t, []int64{0, 1}, []int64{b.Details[0].Remaining, b.Details[1].Remaining}, "on what the ask before has left")
		for _, key := range []string{"y", "x9"} {
			c := reserveOne(key, "t")
			ask(c)
			require.Error(t, c.Err, "no part")
		}
		return nil
	}))
	require.True(t, p.Changed)
	require.True(t, p.Others[0].Changed)
	require.Len(t, p.All, 1)
	require.Len(t, p.Others[0].All, 2)

	require.NoError(t, run(func(ask func(*decide.Ask)) error {
		a := all(2, "1", "x1")
		ask(a)
		require.True(t, a.Refused)
		b := all(9, "1", "x3", "x4")
		ask(b)
		require.ErrorIs(t, b.Err, limit.ErrTooLarge)
		return nil
	}))
	require.False(t, p.Changed, "nor has the state with room")
	require.False(t, p.Others[0].Changed)
	require.Equal(t, 0, p.TooLarge)
	require.Equal(t, 1, p.Others[0].TooLarge)

	require.ErrorIs(t, run(func(ask func(*decide.Ask)) error {
		a := all(9, "1", "x1")
		ask(a)
		require.NoError(t, a.Err)
		return limit.ErrFull
	}), limit.ErrFull)
	require.False(t, p.Changed)
	require.False(t, p.Others[0].Changed)
	require.NoError(t, run(func(ask func(*decide.Ask)) error {
		a := all(9, "1", "x1")
		ask(a)
		require.Equal(t, []int64{7, 6}, []int64{a.Details[0].Remaining, a.Details[1].Remaining})
		return nil
	}))
	p.Forget()
	require.Empty(t, p.All)
	require.Empty(t, p.Others[0].All)
}

// TestAJointOwnsItsKeys: also those of its other states.
func TestAJointOwnsItsKeys(t *testing.T) {
	key, other := []byte("key"), []byte("other")
	others := [][]byte{other}
	a := decide.Ask{Family: decide.Joint, Key: key, Others: others, Program: spanning{}}
	require.Equal(t, 8, a.Bytes())
	a.Own(nil)
	other[0], others[0] = 'x', nil
	require.Equal(t, "other", string(a.Others[0]))
	a.Forget()
	require.Nil(t, a.Others)
}

// reaching is a program about the states of spanning that follows links, if the ask has their state.
type reaching struct {
	spanning
	states *[][]byte
}

func (p reaching) Reach(keys [][]byte) {
	*p.states = nil
	for _, key := range keys {
		if state, _, _ := p.Locate(key); state > 0 {
			*p.states = append(*p.states, [][]byte{[]byte("second"), []byte("third")}[state-1])
		}
	}
}

func (p reaching) States() [][]byte { return *p.states }

// TestLinksOfParts: a settlement of a reservation with a link needs a program that follows it, and the states to which it
// leads. Until then nothing changes.
func TestLinksOfParts(t *testing.T) {
	const now = limit.Instant(1_700_000_000e9)
	p := decide.Parts{State: decide.State{Most: 1 << 10}, Others: []decide.State{{Most: 1 << 10}}}
	id := idempotency.Call{Token: []byte("t"), TTL: time.Minute, Max: 9}
	second := [][]byte{[]byte("second")}
	reserve := func(ask func(*decide.Ask)) error {
		w := slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 9, Window: time.Minute, Quantity: 5}
		a := &decide.Ask{
			Family: decide.Several, Details: make([]limit.Decision, 2), ID: id,
			Clauses: []decide.Clause{{Key: []byte("1"), Window: &w}, {Key: []byte("x1"), Window: &w}},
			Reserve: reservation.Terms{TTL: time.Minute, Max: 9, Linked: true, Link: true, Keys: [][]byte{[]byte("x1")}},
		}
		ask(a)
		return a.Err
	}
	require.NoError(t, p.Run(&decide.Ask{Family: decide.Joint, Program: spanning{reserve}, Others: second}, now))
	settled := &decide.Ask{Family: decide.SettleSeveral, ID: id, Clauses: []decide.Clause{{Key: []byte("1")}}}
	settled.Settlement = reservation.Settlement{Op: reservation.Commit, Actual: 2}
	settle := func(ask func(*decide.Ask)) error {
		ask(settled)
		return settled.Err
	}
	var states [][]byte
	others := p.Others
	p.Others = nil
	require.ErrorIs(t, p.Run(&decide.Ask{Family: decide.Joint, Program: reaching{spanning{settle}, &states}}, now), decide.ErrLinked)
	require.False(t, p.Changed)
	require.Equal(t, second, states)
	require.Error(t, p.Run(&decide.Ask{Family: decide.Joint, Program: program(settle)}, now), "it follows no link")
	one := &decide.Ask{Family: decide.Settle, Key: []byte("1"), ID: id, Settlement: reservation.Settlement{Op: reservation.Cancel}}
	require.NoError(t, p.Run(&decide.Ask{Family: decide.Joint, Program: program(func(ask func(*decide.Ask)) error { ask(one); return nil })}, now))
	require.ErrorIs(t, one.Err, decide.ErrOfStates)
	p.Others = others
	require.ErrorIs(t, p.Run(&decide.Ask{Family: decide.Joint, Program: reaching{spanning{settle}, &states}, Others: [][]byte{[]byte("third")}}, now), decide.ErrLinked)
	require.False(t, p.Changed || p.Others[0].Changed)
	require.NoError(t, p.Run(&decide.Ask{Family: decide.Joint, Program: reaching{spanning{settle}, &states}, Others: second}, now))
	require.True(t, p.Changed && p.Others[0].Changed)
	require.Equal(t, reservation.Done, settled.Settled)
	require.True(t, settled.Linked)
}
