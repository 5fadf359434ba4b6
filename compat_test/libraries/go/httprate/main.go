// Command httprate tests go-chi/httprate with httprate-redis as a middleware.
package main

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/go-chi/httprate"
	httprateredis "github.com/go-chi/httprate-redis"

	"github.com/cellserver/cellserver/compat_test/libraries/go/checks"
)

// handler returns a handler with a limit for each value of the header X-User. Each handler has its
// own counter, as if it were in another process.
func handler(limit int, window time.Duration, fallback bool, addr string) http.Handler {
	host, port, _ := net.SplitHostPort(addr)
	number, _ := strconv.ParseUint(port, 10, 16)
	counter, err := httprateredis.NewRedisLimitCounter(&httprateredis.Config{
		WindowLength: window, PrefixKey: strconv.Itoa(limit) + window.String(), FallbackDisabled: !fallback,
		Host: host, Port: uint16(number), FallbackTimeout: 5 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	return httprate.Limit(limit, window, httprate.WithLimitCounter(counter),
		httprate.WithKeyFuncs(func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }),
	)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
}

func request(h http.Handler, user string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-User", user)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func call(h http.Handler, user string) func() (bool, error) {
	return func() (bool, error) {
		switch code := request(h, user).Code; code {
		case http.StatusOK:
			return true, nil
		case http.StatusTooManyRequests:
			return false, nil
		default:
			return false, errors.New("status " + strconv.Itoa(code))
		}
	}
}

func main() {
	addr := checks.Addr()
	hourly := func(limit int) http.Handler { return handler(limit, time.Hour, false, addr) }
	checks.Room(time.Hour, 30*time.Second)
	checks.Run("github.com/go-chi/httprate-redis",
		checks.Check{Name: "limit", Run: func() error { return checks.Admits(20, 30, call(hourly(20), "limit")) }},
		checks.Check{Name: "at-once", Run: func() error { return checks.Parallel(50, 8, 200, call(hourly(50), "at-once")) }},
		checks.Check{Name: "two-processes", Run: func() error {
			// The handlers are used one after the other, because the library reads a counter before
			// it increments it, so calls of two processes at the same time may both pass.
			one, two := hourly(30), hourly(30)
			return errors.Join(checks.Admits(20, 20, call(one, "two")), checks.Admits(10, 20, call(two, "two")))
		}},
		checks.Check{Name: "users", Run: func() error {
			h := hourly(3)
			return errors.Join(checks.Admits(3, 5, call(h, "a")), checks.Admits(3, 5, call(h, "b")))
		}},
		checks.Check{Name: "headers", Run: headers},
		checks.Check{Name: "reopens", Run: func() error {
			checks.Room(2*time.Second, time.Second)
			h := handler(2, 2*time.Second, false, addr)
			return errors.Join(checks.Admits(2, 3, call(h, "reopens")), checks.Reopens(call(h, "reopens")))
		}},
		checks.Check{Name: "keys-expire", Run: func() error {
			client := checks.Client()
			keys, err := client.Keys(checks.Ctx, "*").Result()
			if err != nil {
				return err
			}
			for _, key := range keys {
				ttl, err := client.TTL(checks.Ctx, key).Result()
				if err := errors.Join(err, checks.Within(ttl, 0, 4*time.Hour)); err != nil {
					return err
				}
			}
			return checks.Expect(len(keys) > 0, true)
		}},
		checks.Check{Name: "fallback", Run: func() error {
			return checks.Admits(4, 6, call(handler(4, time.Hour, true, "127.0.0.1:1"), "fallback"))
		}},
		checks.Check{Name: "no-fallback", Run: func() error {
			return checks.Expect(request(handler(4, time.Hour, false, "127.0.0.1:1"), "x").Code, http.StatusPreconditionRequired)
		}},
	)
}

func headers() error {
	h := handler(2, time.Hour, false, checks.Addr())
	first := request(h, "headers")
	request(h, "headers")
	refused := request(h, "headers")
	wait, err := strconv.Atoi(refused.Header().Get("Retry-After"))
	return errors.Join(err, checks.Expect(first.Header().Get("X-RateLimit-Remaining"), "1"),
		checks.Expect(first.Header().Get("X-RateLimit-Limit"), "2"),
		checks.Expect(wait > 0 && wait <= 3600, true))
}
