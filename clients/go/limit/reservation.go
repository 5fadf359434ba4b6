package limit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// These are the bounds of the time to live of a [Reservation], and the time for which it is renewed if nothing ends it.
const (
	MinTTL   = time.Second
	MaxTTL   = 24 * time.Hour
	renewFor = time.Hour
)

// ErrUnsettled says that the server has not ended a reservation or forgotten a key, since it does not answer, or does not know the
// reservation any more.
var ErrUnsettled = errors.New("limit: the server has not settled it")

// Reservation is units that were taken before the cost of a call is known. [Reservation.Commit] or [Reservation.Cancel] ends it. It
// is renewed until then, and for an hour at most; if the process dies, the units come back after the time to live. The methods may
// be called concurrently.
type Reservation struct {
	// Result is the decision. If it denies the call, or if it is not the server's, there is nothing to end, and ending it does nothing.
	Result Result

	limiter *Limiter
	request rules.Request

	mu        sync.Mutex  // guards the fields below
	renewal   *time.Timer // nil if nothing is held
	until     time.Time   // when renewals end
	committed bool        // Commit was called
	ending    bool        // Commit or Cancel was called
	ended     bool        // there is nothing to end, or the server has ended it
}

// Reserve takes the units of c, which is an estimate, for ttl from 1 s to 24 h. The mode Peek and a cost below 1 are errors, as are
// limits of which the server cannot take units back: INTERVAL, DEBT, INIT and CL. It returns after the deadline at the latest. The error
// is as of [Limiter.Take].
func (l *Limiter) Reserve(ctx context.Context, c Call, ttl time.Duration) (*Reservation, error) {
	switch {
	case ttl < MinTTL || ttl > MaxTTL:
		return nil, wrong("a reservation for %v, and not from %v to %v", ttl, MinTTL, MaxTTL)
	case c.Cost < 1 || c.Mode == Peek:
		return nil, wrong("a reservation of %d units with mode %q", c.Cost, c.Mode)
	}
	q := l.request(&c)
	q.TTL = ttl.Truncate(time.Millisecond)
	if q.ID = c.ID; q.ID == "" {
		q.ID = rand.Text()
	}
	res, err := l.observed(ctx, q)
	if err != nil {
		return nil, err
	}
	r := &Reservation{Result: res, limiter: l, request: q, ended: true}
	if res.Source == Server && res.Granted > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended, r.until = false, time.Now().Add(renewFor)
		r.renewal = time.AfterFunc(q.TTL/2, r.renew)
	}
	return r, nil
}

// Commit ends the reservation with the units that were used, at least 0: what was taken beyond is as if it had never been taken, and
// what is missing is taken even beyond the limit. It is sent within the deadline of the limiter even if ctx has ended.
//
// The error wraps [ErrUnsettled] if the server has not answered, or does not know the reservation any more. Then Commit may be called
// again; it counts once. After the time to live the units are charged in full.
func (r *Reservation) Commit(ctx context.Context, used int64) error {
	if used < 0 {
		return wrong("a commit of %d units", used)
	}
	return r.end(ctx, used)
}

// Cancel ends the reservation as if it had never been made, unless Commit was called before: so it may be deferred. It is sent within
// the deadline of the limiter even if ctx has ended. The error is as of Commit.
func (r *Reservation) Cancel(ctx context.Context) error { return r.end(ctx, -1) }

// end settles the reservation: with used units, or none and no trace if used is negative.
func (r *Reservation) end(ctx context.Context, used int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || used < 0 && r.committed {
		return nil
	}
	r.committed, r.ending = r.committed || used >= 0, true
	r.renewal.Stop()
	known, err := r.limiter.settle(context.WithoutCancel(ctx), r.limiter.config.Settle(r.request, used))
	switch {
	case err != nil:
		return err
	case known < 0:
		return fmt.Errorf("%w: the server does not know it any more", ErrUnsettled)
	}
	r.ended = true
	return nil
}

// renew gives the reservation its time to live again. It stops when the reservation has ended, here or on the server.
func (r *Reservation) renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.ending || r.limiter.running.Err() != nil || time.Now().After(r.until) {
		return
	}
	if live, err := r.limiter.settle(r.limiter.running, r.limiter.config.Renew(r.request)); err == nil && live == 0 {
		return
	}
	r.renewal.Reset(r.request.TTL / 2)
}

// Reset forgets what key has used, and denials of it in this limiter. With a policy the user needs the permission +rl.reset. It returns
// after the deadline at the latest. The error wraps [ErrUnsettled] if the server does not answer, and is otherwise as of [Limiter.Take].
func (l *Limiter) Reset(ctx context.Context, key string) error {
	key = rules.Bounded(key)
	_, err := l.settle(ctx, l.config.Reset(key))
	l.cache.Forget(l.scope(key, ""))
	return err
}

// settle sends a command that takes no units, and once more if its connection breaks, since all of them may be sent twice. The
// error wraps [ErrUnsettled], or is a fault of the program as of [Limiter.Take].
func (l *Limiter) settle(ctx context.Context, words []string) (reply int64, err error) {
	ticket := l.breaker.Begin(l.o.Now())
	if !ticket.Allowed {
		return 0, l.unsettled(open)
	}
	outcome := rules.Abandoned
	defer func() { l.breaker.End(ticket, l.o.Now(), outcome, rules.Pause(mathrand.Float64())) }()
	within, cancel := context.WithTimeout(ctx, l.o.Deadline)
	defer cancel()
	answer, err := l.client.Do(within, words)
	var refused ReplyError
	if err != nil && !errors.As(err, &refused) && rules.Retries(faultOf(err), true) && within.Err() == nil {
		answer, err = l.client.Do(within, words)
	}
	switch {
	case err == nil:
		outcome = rules.Answered
		n, ok := answer.(int64)
		if !ok {
			return 0, rules.ErrReply
		}
		return n, nil
	case !errors.As(err, &refused):
		if ctx.Err() == nil {
			outcome = rules.Failed
		}
		return 0, l.unsettled(string(faultOf(err)))
	}
	v, failure := rules.Judge(string(refused), rules.Call, false)
	if outcome = rules.Answered; failure {
		outcome = rules.Failed
	}
	if v == rules.Raise {
		return 0, refused
	}
	return 0, l.unsettled(reasonOf(refused))
}

// unsettled returns the error of a settlement that the server does not make, and tells the log.
func (l *Limiter) unsettled(reason string) error {
	l.tell(l.o.Now(), reason)
	return fmt.Errorf("%w: %s", ErrUnsettled, reason)
}
