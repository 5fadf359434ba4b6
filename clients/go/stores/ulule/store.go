// Package ulule is a store of github.com/ulule/limiter that has its counters in a cellserver.
//
// A program that uses ulule/limiter, with its middleware for net/http, Gin or fasthttp, makes a [Store] in the place of its Redis store.
// A call is one command with a deadline, and Options.OnUnavailable decides during an outage. The package is a module of its own,
// because ulule/limiter brings Gin and fasthttp.
package ulule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ulule/limiter/v3"

	"github.com/cellserver/cellserver/clients/go/limit"
)

// ErrUnavailable is the error of calls that are refused with limit.Deny because the server is away. The middleware of ulule/limiter panics
// at it unless it has an error handler.
var ErrUnavailable = errors.New("ulule: the limiter is not available")

// Store is a limiter.Store. Each rate is a window that begins with the first call of a key: "SW limit period FIXED ANCHOR FIRST". Calls
// that are denied do not count. The methods may be called concurrently.
type Store struct {
	options limit.Options

	mu       sync.Mutex // guards limiters
	limiters map[limiter.Rate]*limit.Limiter
}

var _ limiter.Store = (*Store)(nil)

// New returns a store whose rates become limits with the options o, which has neither Policy nor Limits. Name begins the keys of all of them.
// Each rate has connections of its own unless o has a Client, and is kept until [Store.Close].
func New(o limit.Options) (*Store, error) {
	if o.Policy != "" || len(o.Limits) > 0 {
		return nil, fmt.Errorf("%w: the limits are those of the rates", limit.ErrOptions)
	}
	if o.Name == "" {
		o.Name = "ulule"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{options: o, limiters: map[limiter.Rate]*limit.Limiter{}}
	if _, err := s.of(context.Background(), limiter.Rate{Limit: 1, Period: time.Second}); err != nil { // the options are wrong
		return nil, err
	}
	return s, s.Close()
}

// Close ends the limiters of all rates. No call may be under way.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, l := range s.limiters {
		err = errors.Join(err, l.Close())
	}
	clear(s.limiters)
	return err
}

// of returns the limiter of a rate.
func (s *Store) of(ctx context.Context, r limiter.Rate) (*limit.Limiter, error) {
	r.Formatted = "" // says the same
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.limiters[r]; ok {
		return l, nil
	}
	o := s.options
	o.Limits = []string{fmt.Sprintf("SW %d %dms FIXED ANCHOR FIRST", r.Limit, r.Period.Milliseconds())}
	o.Name = strings.Join([]string{o.Name, fmt.Sprint(r.Limit), fmt.Sprint(r.Period.Milliseconds())}, ".") // rates share no state
	l, err := limit.New(ctx, o)
	if err != nil {
		return nil, err
	}
	s.limiters[r] = l
	return l, nil
}

// Get takes one unit of the rate r for key.
func (s *Store) Get(ctx context.Context, key string, r limiter.Rate) (limiter.Context, error) {
	return s.Increment(ctx, key, 1, r)
}

// Peek returns what Get would, and takes nothing.
func (s *Store) Peek(ctx context.Context, key string, r limiter.Rate) (limiter.Context, error) {
	return s.take(ctx, limit.Call{Key: key, Cost: 1, Mode: limit.Peek}, r)
}

// Increment takes count units of the rate r for key, or none if there are fewer.
func (s *Store) Increment(ctx context.Context, key string, count int64, r limiter.Rate) (limiter.Context, error) {
	return s.take(ctx, limit.Call{Key: key, Cost: count}, r)
}

// Reset forgets what key has used of the rate r.
func (s *Store) Reset(ctx context.Context, key string, r limiter.Rate) (limiter.Context, error) {
	l, err := s.of(ctx, r)
	if err == nil {
		err = l.Reset(ctx, key)
	}
	return limiter.Context{Limit: r.Limit, Remaining: r.Limit, Reset: s.options.Now().Unix()}, err
}

func (s *Store) take(ctx context.Context, c limit.Call, r limiter.Rate) (limiter.Context, error) {
	l, err := s.of(ctx, r)
	if err != nil {
		return limiter.Context{}, err
	}
	res, err := l.Take(ctx, c)
	switch {
	case err != nil:
		return limiter.Context{}, fmt.Errorf("ulule: %w", err)
	case res.Source == limit.Unavailable && !res.Allowed:
		return limiter.Context{}, ErrUnavailable
	case res.Source == limit.Unavailable:
		return limiter.Context{Limit: r.Limit, Remaining: r.Limit, Reset: s.options.Now().Add(r.Period).Unix()}, nil
	}
	wait := res.ResetAfter
	if !res.Allowed {
		wait = res.RetryAfter
	}
	return limiter.Context{
		Limit: r.Limit, Remaining: res.Remaining, Reached: !res.Allowed,
		Reset: s.options.Now().Add(max(0, wait) + time.Second - 1).Unix(), // rounded up, so that a client does not come too early
	}, nil
}
