package routers_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"

	"github.com/cellserver/cellserver/clients/go/httplimit"
	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/limittest"
)

// limiter returns a limiter that lets each key pass once a minute.
func limiter() *limit.Limiter {
	fake := limittest.New(time.UnixMilli(1_790_000_000_000))
	if err := fake.Policy("api", "TB 1 1 60"); err != nil {
		log.Fatal(err)
	}
	l, err := limit.New(context.Background(), fake.Options(limit.Options{Policy: "api", OnUnavailable: limit.Deny}))
	if err != nil {
		log.Fatal(err)
	}
	return l
}

// ask makes two requests, and prints what comes back.
func ask(h http.Handler, path string) {
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		fmt.Printf("%d %v retry after %q\n", w.Code, w.Header()["RateLimit"], w.Header().Get("Retry-After")) //nolint:staticcheck // the name as the draft writes it
	}
}

// chi takes the middleware as it is, for all routes or for a group of them.
func Example_chi() {
	r := chi.NewRouter()
	r.Get("/health", func(http.ResponseWriter, *http.Request) {})
	r.Group(func(r chi.Router) {
		r.Use(httplimit.Middleware(limiter(), httplimit.IP()))
		r.Get("/users/{id}", func(http.ResponseWriter, *http.Request) {})
	})
	ask(r, "/users/7")
	ask(r, "/health")
	// Output:
	// 200 ["api";r=0;t=60] retry after ""
	// 429 ["api";r=0;t=60] retry after "60"
	// 200 [] retry after ""
	// 200 [] retry after ""
}

// Echo wraps middleware of net/http itself. Its RateLimiterStore answers with yes or no alone: header fields, Retry-After and 503 would
// be lost.
func Example_echo() {
	e := echo.New()
	e.GET("/health", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	users := e.Group("/users", echo.WrapMiddleware(httplimit.Middleware(limiter(), httplimit.IP())))
	users.GET("/:id", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	ask(e, "/users/7")
	ask(e, "/health")
	// Output:
	// 200 ["api";r=0;t=60] retry after ""
	// 429 ["api";r=0;t=60] retry after "60"
	// 200 [] retry after ""
	// 200 [] retry after ""
}

// Gin has no middleware of net/http, but its engine is a handler, around which the middleware goes. Skip has the paths without a limit.
func Example_gin() {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.GET("/health", func(*gin.Context) {})
	e.GET("/users/:id", func(*gin.Context) {})
	health := httplimit.Skip(func(r *http.Request) bool { return r.URL.Path == "/health" })
	limited := httplimit.Middleware(limiter(), httplimit.IP(), health)(e)
	ask(limited, "/users/7")
	ask(limited, "/health")
	// Output:
	// 200 ["api";r=0;t=60] retry after ""
	// 429 ["api";r=0;t=60] retry after "60"
	// 200 [] retry after ""
	// 200 [] retry after ""
}
