package golimiter_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/limittest"
	"github.com/cellserver/cellserver/clients/go/stores/golimiter"
)

var noon = time.Unix(1_789_999_980, 0)

func store(t *testing.T, mode limit.OnUnavailable) (*limittest.Fake, *golimiter.Store) {
	t.Helper()
	fake := limittest.New(noon)
	require.NoError(t, fake.Policy("api", "TB 2 2 60"))
	s, err := golimiter.New(t.Context(), fake.Options(limit.Options{Policy: "api", OnUnavailable: mode, Log: slog.New(slog.DiscardHandler)}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(t.Context())) })
	return fake, s
}

func TestTokens(t *testing.T) {
	_, s := store(t, limit.Deny)
	take := func(wantLeft uint64, wantReset time.Duration, wantOK bool) {
		t.Helper()
		tokens, remaining, reset, ok, err := s.Take(t.Context(), "ann")
		require.NoError(t, err)
		require.EqualValues(t, 2, tokens)
		require.Equal(t, wantLeft, remaining)
		require.EqualValues(t, noon.Add(wantReset).UnixNano(), reset)
		require.Equal(t, wantOK, ok)
	}
	take(1, 30*time.Second, true)
	take(0, time.Minute, true)
	take(0, 30*time.Second, false)
	require.NoError(t, s.Burst(t.Context(), "ann", 1))
	tokens, remaining, err := s.Get(t.Context(), "ann")
	require.NoError(t, err)
	require.EqualValues(t, 2, tokens)
	require.EqualValues(t, 1, remaining)
	require.ErrorIs(t, s.Set(t.Context(), "ann", 5, time.Minute), golimiter.ErrSet)
}

func TestOutage(t *testing.T) {
	fake, s := store(t, limit.Deny)
	fake.GoAway()
	_, _, _, ok, err := s.Take(t.Context(), "ann")
	require.ErrorIs(t, err, golimiter.ErrUnavailable)
	require.False(t, ok)
	_, _, err = s.Get(t.Context(), "ann")
	require.ErrorIs(t, err, golimiter.ErrUnavailable)
	require.ErrorIs(t, s.Burst(t.Context(), "ann", 1), golimiter.ErrUnavailable)
	fake, s = store(t, limit.Allow)
	fake.GoAway()
	_, _, _, ok, err = s.Take(t.Context(), "ann")
	require.NoError(t, err)
	require.True(t, ok)
}

// TestMiddleware: the middleware of go-limiter works with the store.
func TestMiddleware(t *testing.T) {
	_, s := store(t, limit.Deny)
	m, err := httplimit.NewMiddleware(s, httplimit.IPKeyFunc())
	require.NoError(t, err)
	h := m.Handle(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		require.Equal(t, want, w.Code)
	}
}
