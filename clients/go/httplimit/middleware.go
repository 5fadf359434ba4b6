// Package httplimit is middleware for net/http that limits requests by a cellserver.
//
// [Middleware] wraps a handler. A [Key] says for whom a request counts: [IP], [Header], [Combine] or a function of the
// application. The middleware belongs behind authentication for keys of users, and before the body is read for keys of addresses.
package httplimit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/fields"
	"github.com/cellserver/cellserver/clients/go/limit"
)

// Option changes a [Middleware].
type Option func(*handler)

// Cost has each request take the units that f returns, and not 1. A request whose cost is negative gets 500, since it would give
// units back.
func Cost(f func(*http.Request) int64) Option { return func(h *handler) { h.cost = f } }

// Skip lets requests pass unasked for which f returns true, such as health checks and CORS preflight.
func Skip(f func(*http.Request) bool) Option { return func(h *handler) { h.skip = f } }

// Style says which header fields responses have; the default is limit.Draft.
func Style(s limit.Style) Option { return func(h *handler) { h.style = s } }

// Member has each request hold the place that f names, for policies with CC.
func Member(f func(*http.Request) string) Option { return func(h *handler) { h.member = f } }

// ChargeWhen decides after the response whether a request is charged, by its status: for example only failed logins. Its units are
// reserved meanwhile. A handler that panics before it has sent a status is not charged.
func ChargeWhen(f func(status int) bool) Option { return func(h *handler) { h.chargeWhen = f } }

// Log is where faults of the program are logged, with the status 500. The default is slog.Default().
func Log(l *slog.Logger) Option { return func(h *handler) { h.log = l } }

// Middleware returns middleware that asks l about each request. A denied request gets 429 with a problem body, one that is
// refused because the server is away 503, as is one whose context ends before the decision, and one for which the limiter has an
// error 500. Header fields that the wrapped handler sets itself stay.
func Middleware(l *limit.Limiter, key Key, options ...Option) func(http.Handler) http.Handler {
	h := handler{
		limiter: l, key: key, style: limit.Draft, log: slog.Default(),
		cost:   func(*http.Request) int64 { return 1 },
		skip:   func(*http.Request) bool { return false },
		member: func(*http.Request) string { return "" },
	}
	for _, o := range options {
		o(&h)
	}
	return func(next http.Handler) http.Handler {
		limited := h
		limited.next = next
		return &limited
	}
}

type handler struct {
	limiter    *limit.Limiter
	key        Key
	style      limit.Style
	log        *slog.Logger
	cost       func(*http.Request) int64
	skip       func(*http.Request) bool
	member     func(*http.Request) string
	chargeWhen func(status int) bool // nil charges all requests
	next       http.Handler
}

// usualFields is how many fields a response has, unless there are those of both styles.
const usualFields = 3

// reserveFor is the time to live of the units of a request that is charged later.
const reserveFor = 30 * time.Second

// ServeHTTP asks the limiter, and then calls the wrapped handler or answers itself.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.skip(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	key, err := h.key(r)
	if err != nil {
		h.fault(w, err)
		return
	}
	if key == "" {
		h.next.ServeHTTP(w, r)
		return
	}
	cost := h.cost(r)
	if cost < 0 {
		h.fault(w, fmt.Errorf("httplimit: a cost of %d", cost))
		return
	}
	res, held, err := h.take(r.Context(), limit.Call{Key: key, Cost: cost, Member: h.member(r)})
	switch {
	case err == nil:
	case r.Context().Err() != nil: // if the handler writes no response, net/http would send 200
		res = limit.Result{Source: limit.Unavailable}
	default:
		h.fault(w, err)
		return
	}
	set := h.limiter.Headers(make([]limit.Field, 0, usualFields), &res, h.style)
	values := make([]string, len(set))
	for i, f := range set {
		values[i] = f.Value
		w.Header()[f.Name] = values[i : i+1 : i+1] // as the draft writes it, which Set would not
	}
	switch {
	case !res.Allowed:
		h.refuse(w, &res)
	case held != nil:
		h.serveHeld(&response{ResponseWriter: w, set: set}, r, held)
	case len(set) > 0:
		rw := &response{ResponseWriter: w, set: set}
		h.next.ServeHTTP(rw, r)
		rw.returned()
	default:
		h.next.ServeHTTP(w, r)
	}
}

// take decides a call. Its units are held if the response decides whether they are charged.
func (h *handler) take(ctx context.Context, c limit.Call) (res limit.Result, held *limit.Reservation, err error) {
	if h.chargeWhen == nil || c.Cost == 0 {
		res, err = h.limiter.Take(ctx, c)
		return res, nil, err
	}
	if held, err = h.limiter.Reserve(ctx, c, reserveFor); err != nil {
		return res, nil, err
	}
	return held.Result, held, nil
}

// serveHeld calls the wrapped handler, and charges the request by its status. A handler that panics has the status that it has sent.
func (h *handler) serveHeld(w *response, r *http.Request, held *limit.Reservation) {
	returned := false
	defer func() {
		if returned {
			w.returned()
		}
		settle := held.Cancel
		if w.status != 0 && h.chargeWhen(w.status) {
			settle = func(ctx context.Context) error { return held.Commit(ctx, held.Result.Granted) }
		}
		if err := settle(r.Context()); err != nil && !errors.Is(err, limit.ErrUnsettled) { // the limiter tells of those
			h.log.Error("request not settled", "error", err)
		}
	}()
	h.next.ServeHTTP(w, r)
	returned = true
}

// refuse writes the response to a denied request.
func (h *handler) refuse(w http.ResponseWriter, res *limit.Result) {
	p := limit.Problem{Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable}
	if res.Source != limit.Unavailable {
		p = h.limiter.Problem(res, http.StatusTooManyRequests)
	}
	body, err := json.Marshal(p)
	if err != nil {
		h.fault(w, err)
		return
	}
	w.Header().Set("Content-Type", fields.ProblemType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // fails only if the client has disconnected
}

// fault answers a request that could not be decided by a fault of the program.
func (h *handler) fault(w http.ResponseWriter, err error) {
	h.log.Error("request not limited", "error", err)
	http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
}

// response removes the header fields of the limiter from responses with the status 503 and from redirections, because
// these say nothing about the resource.
type response struct {
	http.ResponseWriter
	set    []limit.Field
	status int // 0 until one was sent
}

// WriteHeader writes the header, without the fields of the limiter where they are removed.
func (w *response) WriteHeader(status int) {
	if status < http.StatusOK { // an informational response is followed by another one
		w.ResponseWriter.WriteHeader(status)
		return
	}
	if w.status == 0 {
		w.status = status
	}
	if status == http.StatusServiceUnavailable || status >= 300 && status < 400 {
		for _, f := range w.set {
			if v := w.Header()[f.Name]; len(v) == 1 && v[0] == f.Value {
				delete(w.Header(), f.Name)
			}
		}
	}
	w.inner()
	w.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (w *response) Write(b []byte) (int, error) {
	w.implied()
	return w.ResponseWriter.Write(b)
}

// implied prepares a response that has the status 200 unless another was sent.
func (w *response) implied() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.inner()
}

// returned prepares the response of a handler that has written none: net/http sends it with the status 200.
func (w *response) returned() {
	if w.status == 0 {
		w.implied()
	}
}

// inner removes a field that the wrapped handler has set, too, in the form that http.Header.Set gives its name.
func (w *response) inner() {
	for _, f := range w.set {
		if canonical := canonical(f.Name); canonical != f.Name && len(w.Header()[canonical]) > 0 {
			delete(w.Header(), f.Name)
		}
	}
	w.set = w.set[:0:0]
}

// These are the names of the draft in the form of http.Header.Set.
var (
	canonicalLimit  = http.CanonicalHeaderKey(fields.Limit)
	canonicalPolicy = http.CanonicalHeaderKey(fields.Policy)
)

// canonical returns the name of a field in the form of http.Header.Set.
func canonical(name string) string {
	switch name {
	case fields.Limit:
		return canonicalLimit
	case fields.Policy:
		return canonicalPolicy
	}
	return http.CanonicalHeaderKey(name)
}

// Flush sends what was written, if the server can.
func (w *response) Flush() {
	w.implied()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // as http.Flusher, it has no error
}

// Hijack returns the connection, if the server can.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusSwitchingProtocols
	}
	return conn, buffered, err
}

// Unwrap returns the writer of the server, for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
