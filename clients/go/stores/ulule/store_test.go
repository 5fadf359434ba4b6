package ulule_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"

	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/limittest"
	"github.com/cellserver/cellserver/clients/go/stores/ulule"
)

// noon is the beginning of a minute.
var noon = time.Unix(1_789_999_980, 0)

func store(t *testing.T, mode limit.OnUnavailable) (*limittest.Fake, *ulule.Store) {
	t.Helper()
	fake := limittest.New(noon)
	s, err := ulule.New(fake.Options(limit.Options{OnUnavailable: mode, Log: slog.New(slog.DiscardHandler)}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return fake, s
}

func rate(t *testing.T, text string) limiter.Rate {
	t.Helper()
	r, err := limiter.NewRateFromFormatted(text)
	require.NoError(t, err)
	return r
}

func TestRates(t *testing.T) {
	fake, s := store(t, limit.Deny)
	few := limiter.New(s, rate(t, "2-M"))
	many := limiter.New(s, rate(t, "10-H"))
	end := noon.Add(time.Minute).Unix()
	got, err := few.Get(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, limiter.Context{Limit: 2, Remaining: 1, Reset: end}, got)
	got, err = few.Peek(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, limiter.Context{Limit: 2, Remaining: 1, Reset: end}, got)
	_, err = few.Get(t.Context(), "ann")
	require.NoError(t, err)
	got, err = few.Get(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, limiter.Context{Limit: 2, Reset: end, Reached: true}, got)
	got, err = many.Increment(t.Context(), "ann", 4)
	require.NoError(t, err)
	require.EqualValues(t, 6, got.Remaining, "another rate")
	got, err = few.Reset(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, limiter.Context{Limit: 2, Remaining: 2, Reset: noon.Unix()}, got)
	got, err = few.Get(t.Context(), "ann")
	require.NoError(t, err)
	require.False(t, got.Reached)
	fake.Advance(time.Minute)
	got, err = few.Get(t.Context(), "ann")
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Remaining)
}

func TestOutage(t *testing.T) {
	fake, s := store(t, limit.Deny)
	fake.GoAway()
	_, err := limiter.New(s, rate(t, "2-M")).Get(t.Context(), "ann")
	require.ErrorIs(t, err, ulule.ErrUnavailable)
	fake, s = store(t, limit.Allow)
	fake.GoAway()
	got, err := limiter.New(s, rate(t, "2-M")).Get(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, limiter.Context{Limit: 2, Remaining: 2, Reset: noon.Add(time.Minute).Unix()}, got)
}

// TestMiddleware: the middleware of ulule/limiter works with the store.
func TestMiddleware(t *testing.T) {
	_, s := store(t, limit.Deny)
	h := stdlib.NewMiddleware(limiter.New(s, rate(t, "1-M"))).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		require.Equal(t, want, w.Code)
		require.Equal(t, "1", w.Header().Get("X-RateLimit-Limit"))
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []limit.Options{
		{OnUnavailable: limit.Deny, Policy: "api"},
		{OnUnavailable: limit.Deny, Limits: []string{"TB 1 1 1"}},
		{},
		{OnUnavailable: limit.Deny, Name: "a b"},
	} {
		_, err := ulule.New(limittest.New(noon).Options(o))
		require.ErrorIs(t, err, limit.ErrOptions)
	}
}
