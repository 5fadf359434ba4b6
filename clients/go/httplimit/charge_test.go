package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/httplimit"
	"github.com/cellserver/cellserver/clients/go/limit"
)

// TestChargeWhen: only responses that the function names are charged, and their units are taken meanwhile.
func TestChargeWhen(t *testing.T) {
	_, l := setup(t, limit.Options{DenialCache: -1}, "TB 3 1 3600")
	left := func() int64 {
		r, err := l.Take(t.Context(), limit.Call{Key: "ann"})
		require.NoError(t, err)
		return r.Remaining
	}
	failed := httplimit.ChargeWhen(func(status int) bool { return status >= 400 })
	serve := func(f http.HandlerFunc) *http.Response { return get(httplimit.Middleware(l, user, failed)(f)) }
	during := int64(-1)
	r := serve(func(w http.ResponseWriter, _ *http.Request) {
		during = left()
		_, _ = w.Write([]byte("hello"))
	})
	require.EqualValues(t, 2, during)
	require.EqualValues(t, 3, left(), "200 is not charged")
	require.Equal(t, `"api";r=2;t=3600`, field(r, "RateLimit"))
	serve(func(http.ResponseWriter, *http.Request) {})
	require.EqualValues(t, 3, left(), "nor is a response without a word")
	serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	require.EqualValues(t, 2, left())
	require.Panics(t, func() { serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }) })
	require.EqualValues(t, 2, left(), "no status was sent")
	require.Panics(t, func() {
		serve(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			panic(http.ErrAbortHandler)
		})
	})
	require.EqualValues(t, 1, left())
	serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	called := false
	r = serve(func(http.ResponseWriter, *http.Request) { called = true })
	require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
	require.False(t, called)

	free := httplimit.Middleware(l, user, failed, httplimit.Cost(func(*http.Request) int64 { return 0 }))(hello)
	require.Equal(t, http.StatusOK, get(free).StatusCode)
}

// TestChargeWhenWithoutTheServer: the status does not matter, and there is nothing to settle.
func TestChargeWhenWithoutTheServer(t *testing.T) {
	fake, l := setup(t, limit.Options{}, "TB 3 1 3600")
	h := httplimit.Middleware(l, user, httplimit.ChargeWhen(func(int) bool { return true }))(hello)
	fake.GoAway()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	require.Equal(t, http.StatusOK, w.Code)
	fake.ComeBack()
	fake.Advance(time.Second)
	r, err := l.Take(t.Context(), limit.Call{Key: "ann"})
	require.NoError(t, err)
	require.EqualValues(t, 3, r.Remaining)
}
