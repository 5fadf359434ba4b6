// Package golimiter is a store of github.com/sethvargo/go-limiter that has its buckets in a cellserver.
//
// A program that uses go-limiter makes a [Store] in the place of its memory or Redis store. A call is one command with a deadline,
// and Options.OnUnavailable decides during an outage. The package is a module of its own, so that other programs do not get go-limiter.
package golimiter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	limiter "github.com/sethvargo/go-limiter"

	"github.com/cellserver/cellserver/clients/go/limit"
)

// ErrUnavailable is the error of calls that are refused with limit.Deny because the server is away. The middleware of go-limiter answers
// them with the status 500.
var ErrUnavailable = errors.New("golimiter: the limiter is not available")

// ErrSet is the error of [Store.Set]: RL.OVERRIDE gives a key limits of its own, which is for operators and not for a request.
var ErrSet = errors.New("golimiter: the limits are those of the policy, RL.OVERRIDE changes them for a key")

// Store is a limiter.Store. All keys have the limits of the options. The methods may be called concurrently.
type Store struct {
	limiter *limit.Limiter
	now     func() time.Time
}

var _ limiter.Store = (*Store)(nil)

// New returns a store that decides under the policy or the limits of o. "TB 100 100 60" is nearest to what go-limiter has for 100
// tokens and an interval of a minute, but a token comes back as soon as its part of the minute has passed. The error is that of limit.New.
func New(ctx context.Context, o limit.Options) (*Store, error) {
	l, err := limit.New(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{l, o.Now}, nil
}

// Take takes a token for key. reset is the instant, in nanoseconds since 1970, at which a denied call would pass, and otherwise the
// one at which no token is in use. If the server is away and the call passes, the numbers are 0.
func (s *Store) Take(ctx context.Context, key string) (tokens, remaining, reset uint64, ok bool, err error) {
	res, err := s.limiter.Take(ctx, limit.Call{Key: key, Cost: 1})
	switch {
	case err != nil:
		return 0, 0, 0, false, fmt.Errorf("golimiter: %w", err)
	case res.Source == limit.Unavailable && !res.Allowed:
		return 0, 0, 0, false, ErrUnavailable
	}
	wait := res.ResetAfter
	if !res.Allowed {
		wait = res.RetryAfter
	}
	at := s.now().Add(max(0, wait)).UnixNano()
	return unsigned(res.Limit), unsigned(res.Remaining), unsigned(at), res.Allowed, nil
}

// Get returns the limit of key and what is left of it.
func (s *Store) Get(ctx context.Context, key string) (tokens, remaining uint64, err error) {
	res, err := s.limiter.Take(ctx, limit.Call{Key: key})
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("golimiter: %w", err)
	case res.Source == limit.Unavailable:
		return 0, 0, ErrUnavailable
	}
	return unsigned(res.Limit), unsigned(res.Remaining), nil
}

// Set returns [ErrSet].
func (s *Store) Set(context.Context, string, uint64, time.Duration) error { return ErrSet }

// Burst gives tokens back to key, up to its limit. In other stores of go-limiter a burst may exceed the limit.
func (s *Store) Burst(ctx context.Context, key string, tokens uint64) error {
	res, err := s.limiter.Take(ctx, limit.Call{Key: key, Cost: -int64(min(tokens, math.MaxInt64))})
	switch {
	case err != nil:
		return fmt.Errorf("golimiter: %w", err)
	case res.Source == limit.Unavailable:
		return ErrUnavailable
	}
	return nil
}

// Close ends the limiter. No call may be under way.
func (s *Store) Close(context.Context) error { return s.limiter.Close() }

func unsigned(n int64) uint64 { return uint64(max(0, n)) }
