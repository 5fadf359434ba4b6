package remote

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/states"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
)

// partOf returns the key of part 1 of a state.
func partOf(state []byte) []byte { return append(slices.Clone(state), "#1"...) }

// located are the states of a program, by their keys.
type located [][]byte

func (all located) Locate(key []byte) (state int, n uint8, ok bool) {
	name, _ := bytes.CutSuffix(key, []byte("#1"))
	state = slices.IndexFunc(all, func(is []byte) bool { return bytes.Equal(is, name) })
	return state, 1, state >= 0
}

func (all located) Number(key []byte) (n uint8, ok bool) {
	_, n, ok = all[:1].Locate(key)
	return n, ok
}

// booking is a program that reserves units of each of its states.
type booking struct {
	located
	ask decide.Ask
}

func (b *booking) Run(decideOn func(*decide.Ask)) error {
	b.ask.Err = nil
	decideOn(&b.ask)
	return b.ask.Err
}

func (*booking) Guessed() bool { return false }

// book returns an ask that reserves units of each of the states with the keys, as token.
func book(token string, units int64, keys ...string) (*decide.Ask, *booking) {
	p := &booking{}
	w := untilNextYear
	w.Quantity = units
	a := &decide.Ask{Family: decide.Joint, Key: []byte(keys[0]), Program: p}
	p.ask = decide.Ask{Family: decide.Several, Details: make([]limit.Decision, len(keys))}
	terms := reservation.Terms{TTL: time.Hour, Max: 1000, Linked: true, Link: true}
	for i, key := range keys {
		p.located = append(p.located, []byte(key))
		p.ask.Clauses = append(p.ask.Clauses, decide.Clause{Key: partOf([]byte(key)), Window: &w})
		if i > 0 {
			a.Others, terms.Keys = append(a.Others, []byte(key)), append(terms.Keys, partOf([]byte(key)))
		}
	}
	p.ask.Reserve, p.ask.ID = terms, idempotency.Call{Token: []byte(token), TTL: time.Hour, Max: 10_000, Seed: 1}
	p.ask.ID.Print = p.ask.Fingerprint()
	return a, p
}

// concluding is a program that settles what a booking has reserved.
type concluding struct {
	located
	ask     decide.Ask
	runs    int
	reached int // number of calls of Reach
}

func (c *concluding) Run(decideOn func(*decide.Ask)) error {
	c.runs++
	c.ask.Err, c.located = nil, c.located[:1]
	decideOn(&c.ask)
	return c.ask.Err
}

func (*concluding) Guessed() bool { return false }

func (c *concluding) Reach(keys [][]byte) {
	c.reached++
	c.located = c.located[:1]
	for _, key := range keys {
		c.located = append(c.located, bytes.Clone(bytes.TrimSuffix(key, []byte("#1"))))
	}
}

func (c *concluding) States() [][]byte { return c.located[1:] }

// commit returns an ask that settles the reservation token of the state with the key.
func commit(token string, actual int64, key string) (*decide.Ask, *concluding) {
	p := &concluding{located: located{[]byte(key)}}
	p.ask = decide.Ask{
		Family: decide.SettleSeveral, ID: idempotency.Call{Token: []byte(token), TTL: time.Hour, Max: 10_000, Seed: 1},
		Clauses: []decide.Clause{{Key: partOf([]byte(key))}}, Settlement: reservation.Settlement{Op: reservation.Commit, Actual: actual},
	}
	return &decide.Ask{Family: decide.Joint, Key: []byte(key), Program: p}, p
}

// units returns the units in the first part of a state.
func units(t testing.TB, c *cloud, key string) int64 {
	t.Helper()
	v, err := decode(c.look([]byte("cs:" + key)))
	require.NoError(t, err)
	if v.raw == nil {
		return 0
	}
	require.Equal(t, states.Joint, v.entry.Kind)
	plain, _, _ := entry.Parts(&states.AppendLive(nil, v.entry.Value, c.civil())[0].Entry)
	return slidingwindow.Describe(plain.Kind.WindowMode(), plain.Value, c.civil(), func(string, int64) {})
}

// allUnits returns units for each of the states.
func allUnits(t testing.TB, c *cloud, keys ...string) (all []int64) {
	t.Helper()
	for _, key := range keys {
		all = append(all, units(t, c, key))
	}
	return all
}

// TestSettlementsReachFurtherStates: the first state names the others, and all are settled in one step.
func TestSettlementsReachFurtherStates(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds())
	keys := []string{"a{u}", "b{u}", "c{u}"}
	a, _ := book("t", 5, keys...)
	s.call(t, a)
	require.NoError(t, a.Err)
	require.Equal(t, []int64{5, 5, 5}, allUnits(t, c, keys...))
	settled := func(token string, actual int64, key string) reservation.Outcome {
		a, p := commit(token, actual, key)
		s.call(t, a)
		require.NoError(t, a.Err)
		return p.ask.Settled
	}
	require.Equal(t, reservation.Unknown, settled("t", 1, "b{u}"), "another state does not name them")
	require.Equal(t, reservation.Unknown, settled("other", 1, "a{u}"))
	before, swaps := s.Elapsed(), s.ops.swaps
	require.Equal(t, reservation.Done, settled("t", 2, "a{u}"))
	require.Equal(t, 6*time.Millisecond, s.Elapsed()-before, "the first state is read, then all, which are written")
	require.Equal(t, swaps+1, s.ops.swaps)
	require.Equal(t, []int64{2, 2, 2}, allUnits(t, c, keys...))
	require.Equal(t, reservation.Before, settled("t", 9, "a{u}"))
	require.Equal(t, []int64{2, 2, 2}, allUnits(t, c, keys...))
	require.Empty(t, s.queued())

	a, _ = book("u", 5, keys...)
	s.call(t, a)
	c.put([]byte("cs:b{u}"), nil, 0)
	c.put([]byte("cs:c{u}"), []byte("a value of another program"), time.Hour)
	require.Equal(t, reservation.Done, settled("u", 1, "a{u}"), "what is gone is left out")
	require.EqualValues(t, 3, units(t, c, "a{u}"))
	require.Equal(t, "a value of another program", string(c.look([]byte("cs:c{u}"))))
	c.put([]byte("cs:a{u}"), []byte("a value of another program"), time.Hour)
	a, _ = commit("u", 1, "a{u}")
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrWrongType)
}

// TestFurtherStatesInAnotherSlot: they could not be written in one step, so none is settled.
func TestFurtherStatesInAnotherSlot(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{}), bounds())
	a, p := book("t", 5, "a")
	p.ask.Reserve.Keys = [][]byte{partOf([]byte("b"))}
	s.call(t, a)
	require.NoError(t, a.Err)
	raw := c.look([]byte("cs:a"))
	a, _ = commit("t", 1, "a")
	s.call(t, a)
	require.ErrorIs(t, a.Err, decide.ErrStatesApart)
	require.Equal(t, raw, c.look([]byte("cs:a")))
	require.Empty(t, s.queued())
}

// TestFurtherStatesOfATransaction: it knows its keys before it reads them. A command about the first part alone cannot
// settle such a reservation either.
func TestFurtherStatesOfATransaction(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{}), bounds())
	a, _ := book("t", 5, "a{u}", "b{u}")
	s.call(t, a)
	a, _ = commit("t", 1, "a{u}")
	b, p := commit("other", 1, "a{u}")
	s.transact(t, a, b)
	require.ErrorIs(t, a.Err, decide.ErrLinked)
	require.NoError(t, b.Err)
	require.Equal(t, reservation.Unknown, p.ask.Settled)
	one := cancellation("a{u}", "t")
	s.call(t, one)
	require.ErrorIs(t, one.Err, decide.ErrOfStates)
	one, other := cancellation("a{u}", "t"), cancellation("a{u}", "other")
	s.transact(t, one, other)
	require.ErrorIs(t, one.Err, decide.ErrOfStates)
	require.NoError(t, other.Err)
	require.Equal(t, []int64{5, 5}, allUnits(t, c, "a{u}", "b{u}"))
}

// TestFurtherStatesThatBecomeOthers: another server deletes the first state and reserves other ones with the same token,
// while the settlement has read only the first.
func TestFurtherStatesThatBecomeOthers(t *testing.T) {
	c := newCloud(1)
	s, other := serve(c.join(network{there: time.Millisecond, back: time.Millisecond}), bounds()), serve(c.join(network{}), bounds())
	a, _ := book("t", 5, "a{u}", "b{u}")
	s.call(t, a)
	c.after(2500*time.Microsecond, func() {
		again, _ := book("t", 7, "a{u}", "c{u}", "d{u}")
		other.Submit([]*decide.Ask{admin("a{u}", decide.Delete)}, false, func() { other.Submit([]*decide.Ask{again}, false, func() {}) })
	})
	a, p := commit("t", 1, "a{u}")
	s.call(t, a)
	require.NoError(t, a.Err)
	require.Equal(t, reservation.Done, p.ask.Settled)
	require.Equal(t, 4, p.runs, "on the value in memory, on the one that was read, and twice on all states")
	require.Equal(t, 4, p.reached)
	require.Equal(t, []int64{1, 5, 1, 1}, allUnits(t, c, "a{u}", "b{u}", "c{u}", "d{u}"))
	require.Empty(t, s.queued())
}

// booker is a client that reserves units of several states and settles them, one reservation after another. It sends what has
// got an error again, to any server, and each settlement to two servers at once.
type booker struct {
	t       testing.TB
	name    int
	servers []*server
	left    int
	owed    map[string]int64 // units that the settlements of all clients should have left, by key
	done    int              // settlements of all clients that were answered as done
}

// start makes the next reservation.
func (b *booker) start() {
	if b.left--; b.left < 0 {
		return
	}
	rnd := b.servers[0].random
	all := []string{"a{u}", "b{u}", "c{u}", "d{u}"}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	keys := all[:1+rnd.IntN(len(all))]
	token, reserved, actual := fmt.Sprint(b.name, ":", b.left), 1+rnd.Int64N(5), rnd.Int64N(8)
	for _, key := range keys {
		b.owed[key] += actual
	}
	b.send(func() *decide.Ask {
		a, _ := book(token, reserved, keys...)
		return a
	}, func(*decide.Ask) {
		answers, done := 0, 0
		for range 2 {
			b.send(func() *decide.Ask {
				a, _ := commit(token, actual, keys[0])
				return a
			}, func(a *decide.Ask) {
				is := a.Program.(*concluding).ask.Settled
				require.GreaterOrEqual(b.t, is, reservation.Before)
				if is == reservation.Done {
					done++
				}
				if answers++; answers == 2 {
					require.LessOrEqual(b.t, done, 1, "it is settled once")
					b.done += done
					b.start()
				}
			})
		}
	})
}

// send sends what make returns until it is answered without an error, and then calls then.
func (b *booker) send(make func() *decide.Ask, then func(*decide.Ask)) {
	at := b.servers[b.servers[0].random.IntN(len(b.servers))]
	a := make()
	at.Submit([]*decide.Ask{a}, false, func() {
		var away decide.Unavailable
		if errors.As(a.Err, &away) {
			at.after(at.upTo(50*time.Millisecond), func() { b.send(make, then) })
			return
		}
		require.NoError(b.t, a.Err)
		at.after(at.upTo(5*time.Millisecond), func() { then(a) })
	})
}

// TestReservationsOfJointsOfSeveralStatesThatRace: with one to five servers on an engine that loses and repeats requests and
// replies, each reservation is made in all of its states or none, and settled once, in all of them.
func TestReservationsOfJointsOfSeveralStatesThatRace(t *testing.T) {
	for seed := range uint64(effort.Steps(9, 200)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := newCloud(seed)
			var servers []*server
			for range []int{1, 2, 5}[seed%3] {
				servers = append(servers, serve(c.join(lossy(.05*float64(seed%4))), bounds()))
			}
			owed := map[string]int64{}
			var clients []*booker
			for i := range 6 {
				b := &booker{t: t, name: i, servers: servers, left: 30, owed: owed}
				clients = append(clients, b)
				b.start()
			}
			c.runFor(10 * time.Minute)
			done := 0
			for _, b := range clients {
				require.Negative(t, b.left)
				done += b.done
			}
			for _, s := range servers {
				require.Empty(t, s.queued())
			}
			require.Positive(t, done)
			if seed%4 == 0 {
				require.Equal(t, 6*30, done, "nothing was lost")
			}
			for key, want := range owed {
				require.Equal(t, want, units(t, c, key), key)
			}
		})
	}
}
