package remote

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
)

// TestKeysOfServersAreNotForClients: an ask about a hidden key is answered as if another program had written its value,
// alone, beside others and in an EXEC.
func TestKeysOfServersAreNotForClients(t *testing.T) {
	c := newCloud(1)
	l := bounds()
	l.hidden = "{policies}:"
	s := serve(c.join(network{}), l)
	cell := func(key string) *decide.Ask {
		return &decide.Ask{Family: decide.Cell, Key: []byte(key), Quota: perHour(t, 5), Quantity: 1}
	}
	a, b := cell("{policies}:head"), cell("{policies}")
	s.call(t, a, b)
	require.ErrorIs(t, a.Err, limit.ErrWrongType)
	require.NoError(t, b.Err)

	q := perHour(t, 5)
	several := func(key string) *decide.Ask {
		return &decide.Ask{
			Family: decide.Several, Details: make([]limit.Decision, 2),
			Clauses: []decide.Clause{{Key: []byte("k"), Quota: &q, Quantity: 1}, {Key: []byte(key), Quota: &q, Quantity: 1}},
		}
	}
	a = several("{policies}:log")
	s.call(t, a)
	require.ErrorIs(t, a.Err, limit.ErrWrongType)

	a, b = cell("{policies}:00"), cell("k")
	answered := false
	s.Submit([]*decide.Ask{a, b}, true, func() { answered = true })
	for !answered {
		s.runUntil(s.due[0].at)
	}
	require.ErrorIs(t, a.Err, limit.ErrWrongType)
	require.NoError(t, b.Err)
	require.EqualValues(t, 4, b.Decision.Remaining, "the call of several clauses has charged nothing")
	for _, key := range []string{"cs:{policies}:head", "cs:{policies}:log", "cs:{policies}:00"} {
		require.Nil(t, s.look([]byte(key)))
	}
}

// TestStateOfOneLimiterIsTheFirstPart: a tool copies the states of a server that has a key for each part.
func TestStateOfOneLimiterIsTheFirstPart(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{}), bounds())
	a, p := joint("k", 5)
	p.take(func(part *decide.Ask) { // the first ask of the program, outside it
		part.Key = []byte("k")
		s.call(t, part)
	}, "1", 5)
	require.NoError(t, p.ask.Err)
	s.call(t, a)
	require.NoError(t, a.Err)
	require.True(t, p.granted)
	require.Equal(t, [4]int64{1: 2, 2: 1}, sums(t, s.look([]byte("cs:k")), s.civil()))
}

// TestOneLimiterOfAJointState: a command about one limiter reaches the first part, as a client that gives back the place
// of a policy.
func TestOneLimiterOfAJointState(t *testing.T) {
	c := newCloud(1)
	s := serve(c.join(network{}), bounds())
	a, p := joint("k", 5)
	s.call(t, a)
	require.NoError(t, a.Err)
	p.take(func(part *decide.Ask) {
		part.Key, part.Window.Quantity = []byte("k"), 3
		s.call(t, part)
	}, "1", 5)
	require.NoError(t, p.ask.Err)
	require.EqualValues(t, 1, p.ask.Decision.Remaining)
	require.Equal(t, [4]int64{1: 4, 2: 1}, sums(t, s.look([]byte("cs:k")), s.civil()))

	cell := &decide.Ask{Family: decide.Cell, Key: []byte("k"), Quota: perHour(t, 5), Quantity: 1}
	s.call(t, cell)
	require.ErrorIs(t, cell.Err, limit.ErrWrongType)
	gone := &decide.Ask{Family: decide.Admin, Key: []byte("k"), Admin: decide.AdminCall{Op: decide.Delete}}
	s.call(t, gone)
	require.NoError(t, gone.Err)
	require.True(t, gone.Result.Done)
	require.Equal(t, [4]int64{2: 1}, sums(t, s.look([]byte("cs:k")), s.civil()))

	// Beside a call of another key in one transaction.
	a, p = joint("k", 5)
	p.take(func(part *decide.Ask) { part.Key = []byte("k") }, "1", 5)
	alone, again := p.ask, *cell
	alone.Key = []byte("k")
	answered := false
	s.Submit([]*decide.Ask{a, &alone, &again}, true, func() { answered = true })
	for !answered {
		s.runUntil(s.due[0].at)
	}
	require.NoError(t, a.Err)
	require.NoError(t, alone.Err)
	require.EqualValues(t, 3, alone.Decision.Remaining)
	require.ErrorIs(t, again.Err, limit.ErrWrongType)
	require.Equal(t, [4]int64{1: 2, 2: 2}, sums(t, s.look([]byte("cs:k")), s.civil()))
}
