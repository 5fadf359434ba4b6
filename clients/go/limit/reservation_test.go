package limit_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/limittest"
)

// budget is a fake with a policy llm, and a limiter for it.
type budget struct {
	*limittest.Fake
	t *testing.T
	l *limit.Limiter
}

func newBudget(t *testing.T, limits ...string) *budget {
	t.Helper()
	fake := limittest.New(time.Unix(1_789_999_980, 0)) // the beginning of a minute
	require.NoError(t, fake.Policy("llm", limits...))
	l, err := limit.New(t.Context(), fake.Options(limit.Options{Policy: "llm", OnUnavailable: limit.Deny, DenialCache: -1, Log: slog.New(slog.DiscardHandler)}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return &budget{fake, t, l}
}

func (b *budget) reserve(id string, units int64, ttl time.Duration) *limit.Reservation {
	b.t.Helper()
	r, err := b.l.Reserve(b.t.Context(), limit.Call{Key: "k", Cost: units, ID: id}, ttl)
	require.NoError(b.t, err)
	return r
}

// left returns what is left, without taking anything.
func (b *budget) left() int64 {
	b.t.Helper()
	r, err := b.l.Take(b.t.Context(), limit.Call{Key: "k"})
	require.NoError(b.t, err)
	return r.Remaining
}

// TestReservations plays the examples of docs/limiters.md.
func TestReservations(t *testing.T) {
	b := newBudget(t, "TB 1000 1000 60")
	first := b.reserve("a", 800, 30*time.Second)
	require.True(t, first.Result.Allowed)
	require.EqualValues(t, 200, b.left())
	denied := b.reserve("b", 300, 30*time.Second)
	require.False(t, denied.Result.Allowed)
	require.Equal(t, 6*time.Second, denied.Result.RetryAfter)
	require.NoError(t, denied.Commit(t.Context(), 300), "there is nothing to end")
	require.True(t, b.reserve("a", 800, 30*time.Second).Result.Allowed, "a repeat")
	require.EqualValues(t, 200, b.left())
	b.Advance(2 * time.Second)
	require.NoError(t, first.Commit(t.Context(), 300))
	require.EqualValues(t, 733, b.left())
	require.NoError(t, first.Commit(t.Context(), 999), "it has ended")
	b.Advance(time.Second)
	second := b.reserve("b", 300, 30*time.Second)
	require.EqualValues(t, 450, b.left())
	b.Advance(2 * time.Second)
	require.NoError(t, second.Commit(t.Context(), 500))
	require.EqualValues(t, 283, b.left())
	again := b.reserve("a", 800, 30*time.Second)
	require.Equal(t, limit.Unavailable, again.Result.Source, "an id that has ended is not used again")
}

// TestReservationThatLapses: the caller dies, and comes back.
func TestReservationThatLapses(t *testing.T) {
	b := newBudget(t, "TB 1000 1000 60")
	r := b.reserve("a", 600, 10*time.Second)
	b.Advance(9 * time.Second)
	require.EqualValues(t, 550, b.left())
	b.Advance(time.Second)
	require.EqualValues(t, 1000, b.left())
	b.Advance(5 * time.Second)
	require.NoError(t, r.Commit(t.Context(), 450), "charged in full, now")
	require.EqualValues(t, 550, b.left())
}

// TestRefillIsNotGivenTwice: nothing comes back of what has been refilled meanwhile.
func TestRefillIsNotGivenTwice(t *testing.T) {
	b := newBudget(t, "TB 1000 1000 60")
	r := b.reserve("a", 1000, time.Hour)
	b.Advance(time.Minute)
	_, err := b.l.Take(t.Context(), limit.Call{Key: "k", Cost: 1000})
	require.NoError(t, err)
	require.NoError(t, r.Cancel(t.Context()))
	require.Zero(t, b.left())
}

// TestReservationsOfWindows: an estimate stays in its window, and what is missing is taken in the present one.
func TestReservationsOfWindows(t *testing.T) {
	b := newBudget(t, "SW 100 60 FIXED")
	b.Advance(50 * time.Second)
	r := b.reserve("", 80, 30*time.Second)
	require.EqualValues(t, 20, b.left())
	b.Advance(12 * time.Second)
	require.NoError(t, r.Commit(t.Context(), 90))
	require.EqualValues(t, 90, b.left())
	b.Advance(3 * time.Second)
	b.reserve("", 50, 2*time.Second)
	require.EqualValues(t, 40, b.left())
	b.Advance(2 * time.Second)
	require.EqualValues(t, 90, b.left())
}

// TestCancelDeferred: a cancellation behind a commit does nothing, even if the commit was lost.
func TestCancelDeferred(t *testing.T) {
	b := newBudget(t, "TB 1000 1 60")
	kept, dropped := b.reserve("", 400, time.Minute), b.reserve("", 100, time.Minute)
	b.GoAway()
	require.ErrorIs(t, kept.Commit(t.Context(), 300), limit.ErrUnsettled)
	require.NoError(t, kept.Cancel(t.Context()))
	b.ComeBack()
	require.EqualValues(t, 500, b.left())
	require.NoError(t, kept.Commit(t.Context(), 300))
	require.EqualValues(t, 600, b.left())
	ended, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, dropped.Cancel(ended), "whatever the context")
	require.EqualValues(t, 700, b.left())
}

func TestReservationsWithoutTheServer(t *testing.T) {
	b := newBudget(t, "TB 1000 1 60")
	b.GoAway()
	r := b.reserve("", 1, time.Minute)
	require.Equal(t, limit.Unavailable, r.Result.Source)
	asked := len(b.Calls())
	require.NoError(t, r.Commit(t.Context(), 1))
	require.Len(t, b.Calls(), asked)
}

func TestReservationOptions(t *testing.T) {
	l, s := limiter(t, limit.Options{}, five(0, 2, 1, -1, 0))
	sent := len(s.words)
	for _, c := range []struct {
		call limit.Call
		ttl  time.Duration
	}{
		{limit.Call{Key: "k", Cost: 1}, time.Second - 1},
		{limit.Call{Key: "k", Cost: 1}, 24*time.Hour + 1},
		{limit.Call{Key: "k"}, time.Minute},
		{limit.Call{Key: "k", Cost: -1}, time.Minute},
		{limit.Call{Key: "k", Cost: 1, Mode: limit.Peek}, time.Minute},
	} {
		_, err := l.Reserve(t.Context(), c.call, c.ttl)
		require.ErrorIs(t, err, limit.ErrOptions)
	}
	require.Len(t, s.words, sent)
	r, err := l.Reserve(t.Context(), limit.Call{Key: "k", Cost: 1}, time.Minute)
	require.NoError(t, err)
	require.ErrorIs(t, r.Commit(t.Context(), -1), limit.ErrOptions)
}

// TestSettlement: a commit is sent again if its connection breaks, and its error says whether it counts.
func TestSettlement(t *testing.T) {
	broken := errors.New("connection reset")
	for name, c := range map[string]struct {
		replies []any
		want    error
		sent    int
	}{
		"settled":            {[]any{int64(1)}, nil, 1},
		"late":               {[]any{int64(2)}, nil, 1},
		"before":             {[]any{int64(0)}, nil, 1},
		"unknown":            {[]any{int64(-1)}, limit.ErrUnsettled, 1},
		"broken once":        {[]any{broken, int64(1)}, nil, 2},
		"broken twice":       {[]any{broken}, limit.ErrUnsettled, 2},
		"timed out":          {[]any{context.DeadlineExceeded}, limit.ErrUnsettled, 1},
		"loading":            {[]any{limit.ReplyError("LOADING wait")}, limit.ErrUnsettled, 1},
		"without permission": {[]any{limit.ReplyError("NOPERM no")}, limit.ErrUnsettled, 1},
		"a wrong type":       {[]any{limit.ReplyError("WRONGTYPE no")}, limit.ReplyError("WRONGTYPE no"), 1},
	} {
		l, s := limiter(t, limit.Options{}, append([]any{five(0, 2, 1, -1, 0)}, c.replies...)...)
		r, err := l.Reserve(t.Context(), limit.Call{Key: "k", Cost: 1, ID: "r1"}, 30*time.Second)
		require.NoError(t, err)
		require.Equal(t, "RL.USE api k 1 RESERVE r1 30000 MS WITHDETAILS", s.words[1])
		require.ErrorIs(t, r.Commit(t.Context(), 5), c.want, name)
		require.Len(t, s.words, 2+c.sent, name)
		require.Equal(t, "RL.COMMIT k r1 5 POLICY api", s.words[2], name)
	}
}

// TestRenewal: a reservation is renewed at half of its time to live until it is ended, the limiter is closed or an hour has passed.
func TestRenewal(t *testing.T) {
	renew := "RL.RENEW k r1 30000 MS POLICY api"
	for name, c := range map[string]struct {
		end  func(*testing.T, *limit.Limiter, *limit.Reservation)
		live int64
		want int
	}{
		"ended":      {func(t *testing.T, _ *limit.Limiter, r *limit.Reservation) { require.NoError(t, r.Cancel(t.Context())) }, 1, 4},
		"closed":     {func(t *testing.T, l *limit.Limiter, _ *limit.Reservation) { require.NoError(t, l.Close()) }, 1, 4},
		"not live":   {func(*testing.T, *limit.Limiter, *limit.Reservation) {}, 0, 1},
		"never done": {func(*testing.T, *limit.Limiter, *limit.Reservation) {}, 1, 240},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s := limiter(t, limit.Options{}, five(0, 2, 1, -1, 0), c.live)
				r, err := l.Reserve(t.Context(), limit.Call{Key: "k", Cost: 1, ID: "r1"}, 30*time.Second)
				require.NoError(t, err)
				time.Sleep(65 * time.Second)
				synctest.Wait()
				c.end(t, l, r)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				renewed := 0
				for _, w := range s.words {
					if w == renew {
						renewed++
					}
				}
				require.Equal(t, c.want, renewed)
			})
		})
	}
}

// TestInlineReservations: the reservation of an inline limit is settled under the key of its state.
func TestInlineReservations(t *testing.T) {
	fake := limittest.New(noon)
	l, err := limit.New(t.Context(), fake.Options(limit.Options{Limits: []string{"TB 10 1 60"}, OnUnavailable: limit.Deny}))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	r, err := l.Reserve(t.Context(), limit.Call{Key: "k", Cost: 8}, time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 2, r.Result.Remaining)
	require.NoError(t, r.Commit(t.Context(), 1))
	look, err := l.Take(t.Context(), limit.Call{Key: "k"})
	require.NoError(t, err)
	require.EqualValues(t, 9, look.Remaining)
}

// TestReset: a key begins anew, also for the cache of denials.
func TestReset(t *testing.T) {
	b := newBudget(t, "TB 1 1 60")
	l, err := limit.New(t.Context(), b.Options(limit.Options{Policy: "llm", OnUnavailable: limit.Deny, Log: slog.New(slog.DiscardHandler)}))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	take := func() limit.Result {
		r, err := l.Allow(t.Context(), "k")
		require.NoError(t, err)
		return r
	}
	require.True(t, take().Allowed)
	require.False(t, take().Allowed)
	require.Equal(t, limit.Cache, take().Source)
	require.NoError(t, l.Reset(t.Context(), "k"))
	require.True(t, take().Allowed)
	b.GoAway()
	require.ErrorIs(t, l.Reset(t.Context(), "k"), limit.ErrUnsettled)

	inline, s := &scripted{replies: []any{int64(1)}}, limit.Options{Limits: []string{"TB 1 1 60", "SW 9 1h"}, OnUnavailable: limit.Deny}
	s.Client = inline
	l, err = limit.New(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, l.Reset(t.Context(), "k"))
	require.NoError(t, l.Close())
	require.Equal(t, []string{"DEL limit:k limit:k#2"}, inline.words)
}
