package remote

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
)

// onceAYear is a call for one of most units of a year. It has an identity if token is not empty.
func onceAYear(key string, most int64, token string) *decide.Ask {
	w := untilNextYear
	w.Limit, w.Quantity = most, 1
	a := &decide.Ask{Family: decide.Window, Key: []byte(key), Window: w}
	if token != "" {
		a.ID = idempotency.Call{Token: []byte(token), TTL: time.Hour, Max: 10, Seed: 1}
		a.ID.Print = a.Fingerprint()
	}
	return a
}

// reserved makes a a reservation for the time ttl.
func reserved(a *decide.Ask, ttl time.Duration) *decide.Ask {
	a.Reserve = reservation.Terms{TTL: ttl, Max: 10}
	a.ID.Print = a.Fingerprint()
	return a
}

// bothOf is an RL.MULTI of two keys that reserves a unit of each.
func bothOf(first, second string) *decide.Ask {
	w := untilNextYear
	w.Quantity = 1
	a := &decide.Ask{Family: decide.Several, Clauses: []decide.Clause{{Key: []byte(first), Window: &w}, {Key: []byte(second), Window: &w}}}
	a.Details, a.ID = make([]limit.Decision, 2), idempotency.Call{Token: []byte("t"), TTL: time.Hour, Max: 10, Seed: 1}
	reserved(a, time.Hour)
	a.Reserve.Linked, a.Reserve.Link, a.Reserve.Keys = true, true, [][]byte{[]byte(second)}
	return a
}

func cancellation(key, token string) *decide.Ask {
	return &decide.Ask{
		Family: decide.Settle, Key: []byte(key), ID: idempotency.Call{Token: []byte(token), TTL: time.Hour, Max: 10, Seed: 1},
		Settlement: reservation.Settlement{Op: reservation.Cancel},
	}
}

// TestAnIdentityIsDecidedInTheEngine: a call with an identity is answered neither by a remembered denial nor from a lease,
// and leaves none.
func TestAnIdentityIsDecidedInTheEngine(t *testing.T) {
	l := bounds()
	l.denials, l.lease, l.leased = time.Minute, 100*time.Millisecond, func([]byte) bool { return true }
	c := newCloud(1)
	s := serve(c.join(network{}), l)
	s.call(t, onceAYear("k", 1, "first"))
	for range 2 {
		a := onceAYear("k", 1, "")
		s.call(t, a)
		require.False(t, a.Decision.Allowed())
	}
	require.EqualValues(t, 1, s.count.cachedDenials.Load())
	asked := c.requests
	again, other := onceAYear("k", 1, "first"), onceAYear("k", 1, "other")
	s.call(t, again)
	s.call(t, other)
	require.True(t, again.Repeated && again.Decision.Allowed())
	require.False(t, other.Decision.Allowed())
	require.Greater(t, c.requests, asked+1)
	require.EqualValues(t, 1, s.count.cachedDenials.Load())

	for i := range 2 * hotCalls {
		s.call(t, onceAYear("hot", 1<<40, "t"+string(rune('a'+i))))
	}
	require.Zero(t, s.count.leases.Load(), "such calls do not make a key hot")
	for range 3 * hotCalls {
		s.call(t, onceAYear("hot", 1<<40, ""))
	}
	require.Positive(t, s.count.leases.Load())
	leased := s.count.leased.Load()
	a := onceAYear("hot", 1<<40, "ta")
	s.call(t, a)
	require.False(t, a.Repeated, "the key has forgotten it")
	s.call(t, onceAYear("hot", 1<<40, "ta"))
	require.Equal(t, leased, s.count.leased.Load())
}

// TestADenialEndsWithAReservation: the units of a reservation come back at its end, so a denial is not repeated after it.
func TestADenialEndsWithAReservation(t *testing.T) {
	l := bounds()
	l.denials = time.Hour
	c := newCloud(1)
	s, other := serve(c.join(network{}), l), serve(c.join(network{}), l)
	other.call(t, reserved(onceAYear("k", 1, "r"), time.Second))
	c.runFor(900 * time.Millisecond)
	for range 3 {
		a := onceAYear("k", 1, "")
		s.call(t, a)
		require.False(t, a.Decision.Allowed())
	}
	require.EqualValues(t, 2, s.count.cachedDenials.Load())
	c.runFor(200 * time.Millisecond)
	a := onceAYear("k", 1, "")
	s.call(t, a)
	require.True(t, a.Decision.Allowed())
	require.EqualValues(t, 1, a.Lapsed)
}

// TestReservationsOfSeveralKeysAreInOneSlot: otherwise they could not be made and settled in one step. A transaction knows
// its keys before it reads them, so it settles none.
func TestReservationsOfSeveralKeysAreInOneSlot(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{}), bounds())
	apart := bothOf("a", "b")
	s.call(t, apart)
	require.ErrorIs(t, apart.Err, decide.ErrCrossSlot)
	one := bothOf("{k}a", "{k}b")
	s.call(t, one)
	require.NoError(t, one.Err)

	done := false
	first, second := cancellation("{k}a", "t"), cancellation("{k}a", "unknown")
	s.Submit([]*decide.Ask{first, second}, true, func() { done = true })
	c.runFor(time.Second)
	require.True(t, done)
	require.ErrorIs(t, first.Err, decide.ErrLinked)
	require.NoError(t, second.Err)
	require.Equal(t, reservation.Unknown, second.Settled)
	s.call(t, first)
	require.NoError(t, first.Err)
	require.Equal(t, reservation.Done, first.Settled)
	for _, key := range []string{"{k}a", "{k}b"} {
		a := onceAYear(key, 1, "")
		a.Window.Quantity = 0
		s.call(t, a)
		require.EqualValues(t, 1, a.Decision.Remaining)
	}
}

// TestPoliciesRememberNothing: what a policy answers in place of the engine has no identity, and no settlement is guessed.
func TestPoliciesRememberNothing(t *testing.T) {
	for _, rule := range []string{Opened, Local} {
		p, local := policiesOf(map[string]string{"": rule})
		a := reserved(onceAYear("k", 1, "t"), time.Second)
		p.answer(a, "timeout")
		require.NoError(t, a.Err)
		require.Nil(t, a.ID.Token)
		require.False(t, a.Reserve.TTL > 0 || a.Repeats() || a.Reserved())
		for i := range *local {
			require.Nil(t, (*local)[i].ID.Token)
			require.Zero(t, (*local)[i].Reserve.TTL)
		}
		require.Equal(t, slidingwindow.Fixed, a.Window.Mode)
		b := cancellation("k", "t")
		p.answer(b, "timeout")
		require.Equal(t, decide.Unavailable("the store does not answer: timeout"), b.Err)
	}
}
