package limit

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/local"
	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// Mode is the way in which a call takes units.
type Mode = rules.Mode

// These are the modes. Plain takes all units or none of them.
const (
	Plain   = rules.Plain
	Peek    = rules.Peek
	Partial = rules.Partial
	Force   = rules.Force
)

// Call is a call that a limiter has to decide.
type Call struct {
	// Key is the key under which the call counts. A key of more than 128 bytes is replaced by a
	// hash of it.
	Key string
	// Cost is the number of units that the call takes. 0 takes none, and a negative number gives
	// units back.
	Cost int64
	Mode Mode
	// Member is the name of the holder of a place, for a clause CC.
	Member string
	// ID makes a call that is sent again count once. With [Limiter.Reserve] it is the id of the reservation, which is a random one if ID
	// is empty.
	ID string
}

// Limiter decides calls under one policy. Its methods may be called concurrently.
type Limiter struct {
	o      Options
	config rules.Config
	client Client
	close  func() error

	breaker rules.Breaker
	cache   *rules.Cache
	noID    atomic.Bool  // whether the server is too old for the option ID
	logged  atomic.Int64 // the time at which the last line about an outage was written

	local     atomic.Pointer[local.Table] // the limiter in this process; nil unless the server is away
	lastLocal atomic.Int64                // the time at which local has last decided a call

	mu       sync.Mutex     // mu guards fallback, and is held while a goroutine makes local
	fallback []rules.Clause // the clauses for Local; nil if they are not known

	running context.Context // ends with the limiter
	stop    context.CancelFunc
	reading sync.WaitGroup
}

// startTimeout is the time limit of the check at the start, which is longer because the first call
// has to connect.
const startTimeout = time.Second

// New returns a limiter. It asks the server whether the policy can be used; ctx ends that. The error wraps [ErrOptions] or is
// a [ReplyError] about the configuration, such as NOPOLICY. A server that does not answer is no error but a line in the log, except
// with Local if the limits are not known. The caller closes the limiter.
func New(ctx context.Context, o Options) (*Limiter, error) {
	config, fallback, err := o.settle()
	if err != nil {
		return nil, err
	}
	l := &Limiter{o: o, config: config, client: o.Client, fallback: fallback, cache: rules.NewCache(o.DenialCache), close: func() error { return nil }}
	if o.Client == nil {
		if l.client, l.close, err = dial(o.URL, o.Deadline); err != nil {
			return nil, err
		}
	}
	l.running, l.stop = context.WithCancel(context.Background())
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close ends the limiter, and its connections unless they are those of Options.Client. No call may be under way, and reservations
// that were not ended are not renewed any more.
func (l *Limiter) Close() error {
	l.stop()
	l.reading.Wait()
	return l.close()
}

// start checks the configuration, and reads the limits of the policy if Local needs them.
func (l *Limiter) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if words := l.config.Start(""); words != nil {
		_, err := l.client.Do(ctx, words)
		var refused ReplyError
		switch {
		case err == nil, errors.As(err, &refused) && refused == needsMember:
		case refused != "" && startVerdict(refused) == rules.Raise:
			return refused
		default:
			l.o.Log.Warn("limiter not available at start", "policy", l.config.Policy, "reason", reasonOf(err))
		}
	}
	if l.o.OnUnavailable != Local || l.fallback != nil {
		return nil
	}
	if err := l.readLimits(ctx); err != nil {
		return wrong("Local needs the limits of the policy: %v", err)
	}
	l.reading.Go(func() { l.readOn(l.running) })
	return nil
}

// needsMember is the error that the check at the start gets for a policy with CC, because the check has no member.
const needsMember ReplyError = "ERR a CC clause needs MEMBER"

// startVerdict returns the verdict on an error reply at start.
func startVerdict(e ReplyError) rules.Verdict {
	v, _ := rules.Judge(string(e), rules.Start, false)
	return v
}

// Allow takes one unit for key.
func (l *Limiter) Allow(ctx context.Context, key string) (Result, error) {
	return l.Take(ctx, Call{Key: key, Cost: 1})
}

// Take decides a call. It returns after the deadline at the latest. It returns the error of ctx, or a fault of the
// program: a [ReplyError] such as WRONGTYPE, or one that wraps [ErrOptions]. With an error the result allows nothing.
func (l *Limiter) Take(ctx context.Context, c Call) (Result, error) {
	return l.observed(ctx, l.request(&c))
}

// observed decides q, and tells Options.Observe.
func (l *Limiter) observed(ctx context.Context, q rules.Request) (Result, error) {
	began := time.Now()
	r, reason, err := l.decide(ctx, q)
	if err != nil {
		return Result{}, err
	}
	if l.o.Observe != nil {
		l.o.Observe(Event{l.config.Policy, r.Allowed, r.Source, time.Since(began), reason})
	}
	return r, nil
}

// request returns the request for the call c.
func (l *Limiter) request(c *Call) rules.Request {
	r := rules.Request{Key: rules.Bounded(c.Key), Cost: c.Cost, Mode: c.Mode, Member: c.Member, ID: c.ID}
	switch {
	case l.noID.Load():
		r.ID = ""
	case r.ID == "" && l.o.RandomID:
		r.ID = rand.Text()
	}
	return r
}

// decide decides r from memory, by the server, or without it.
func (l *Limiter) decide(ctx context.Context, r rules.Request) (res Result, reason string, err error) {
	scope := l.scope(r.Key, r.Member)
	now := l.o.Now()
	if r.Plain() {
		if d, ok := l.cache.Get(scope, r.Cost, now); ok {
			return result(&d, &r, Cache), "", nil
		}
	}
	ticket := l.breaker.Begin(now)
	if !ticket.Allowed {
		return l.without(&r, now, open), open, nil
	}
	d, reason, err := l.tried(ctx, r, ticket)
	now = l.o.Now()
	switch {
	case err != nil:
		return Result{}, "", err
	case reason != "":
		return l.without(&r, now, reason), reason, nil
	}
	l.back(now)
	if r.Plain() {
		l.cache.Put(scope, r.Cost, d, now)
	}
	return result(&d, &r, Server), "", nil
}

// scope returns for which calls a denial of a key and a member holds.
func (l *Limiter) scope(key, member string) rules.Scope {
	return rules.Scope{Policy: l.config.Policy, Key: key, Class: l.config.Class, Keep: l.config.Keep, Member: member}
}

// tried calls the server, and ends the ticket of the breaker even if the client panics: a breaker whose probe does not end has no
// other.
func (l *Limiter) tried(ctx context.Context, r rules.Request, ticket rules.Ticket) (d rules.Decision, reason string, err error) {
	outcome := rules.Abandoned
	defer func() { l.breaker.End(ticket, l.o.Now(), outcome, rules.Pause(mathrand.Float64())) }()
	d, outcome, reason, err = l.ask(ctx, r)
	return d, reason, err
}

// ask calls the server. reason is empty if the server has decided. A call with ID is sent again once if its connection breaks, and
// once without ID if the server does not know that.
func (l *Limiter) ask(ctx context.Context, r rules.Request) (d rules.Decision, o rules.Outcome, reason string, err error) {
	within, cancel := context.WithTimeout(ctx, l.o.Deadline)
	defer cancel()
	for try := 0; ; try++ {
		words, err := l.config.Words(r)
		if err != nil {
			return d, rules.Abandoned, "", wrong("%v", err)
		}
		reply, err := l.client.Do(within, words)
		if err == nil {
			d, err = rules.Read(reply)
			return d, rules.Answered, "", err
		}
		var refused ReplyError
		if !errors.As(err, &refused) {
			if ctx.Err() != nil {
				return d, rules.Abandoned, "", context.Cause(ctx)
			}
			fault := faultOf(err)
			if try == 0 && rules.Retries(fault, r.ID != "") && within.Err() == nil {
				continue
			}
			return d, rules.Failed, string(fault), nil
		}
		v, failure := rules.Judge(string(refused), rules.Call, r.ID != "" && r.TTL == 0)
		switch {
		case v == rules.WithoutID:
			l.noID.Store(true)
			r.ID = ""
			continue
		case v == rules.Raise:
			return d, rules.Answered, "", refused
		case failure:
			return d, rules.Failed, reasonOf(refused), nil
		}
		return d, rules.Answered, reasonOf(refused), nil
	}
}

// reasonOf returns the first word of an error reply, or the fault for which there is no reply.
func reasonOf(err error) string {
	var refused ReplyError
	if errors.As(err, &refused) {
		code, _, _ := strings.Cut(string(refused), " ")
		return code
	}
	return string(faultOf(err))
}

// open is the reason of a decision without the server while the breaker is open.
const open = "open"

// logEvery is the least time between two lines about an outage.
const logEvery = time.Minute

// tell writes a line about an outage, unless there was one in the last minute.
func (l *Limiter) tell(now time.Time, reason string) {
	last, at := l.logged.Load(), now.UnixNano()
	if last != 0 && at-last < int64(logEvery) || !l.logged.CompareAndSwap(last, at) {
		return
	}
	level := slog.LevelWarn
	if rules.Misconfigures(reason) {
		level = slog.LevelError
	}
	l.o.Log.Log(context.Background(), level, "limiter not available", "policy", l.config.Policy, "reason", reason)
}

// without decides a call that the server does not.
func (l *Limiter) without(r *rules.Request, now time.Time, reason string) Result {
	l.tell(now, reason)
	if l.o.OnUnavailable != Local {
		res := Result{Allowed: l.o.OnUnavailable == Allow, Numbers: Numbers{RetryAfter: None, ResetAfter: None}, Source: Unavailable}
		if res.Allowed {
			res.Granted = r.Cost
		}
		return res
	}
	l.lastLocal.Store(now.UnixNano())
	d := l.table().Decide(now, r.Key, r.Cost, r.Member, r.Mode == Peek)
	return result(&d, r, InProcess)
}

// table returns the limiter of this outage.
func (l *Limiter) table() *local.Table {
	if t := l.local.Load(); t != nil {
		return t
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.local.Load(); t != nil {
		return t
	}
	shares := make([]rules.Clause, len(l.fallback))
	for i, c := range l.fallback {
		shares[i] = c.Share(int64(max(1, l.o.Instances())))
		if as := shares[i].Local().String(); len(shares[i].Options) > 0 && as != shares[i].String() {
			l.o.Log.Warn("limit decided in another mode while the server is away", "policy", l.config.Policy, "limit", shares[i].String(), "as", as)
		}
	}
	t := local.New(shares)
	l.local.Store(t)
	return t
}

// forgetAfter is the time without an outage after which the limiter in the process is dropped. If it were dropped at the first
// answer, each lost reply among others would begin with unused limits.
const forgetAfter = time.Minute

// back drops the limiter in the process if the server has answered all calls for a while.
func (l *Limiter) back(now time.Time) {
	if l.local.Load() != nil && now.UnixNano()-l.lastLocal.Load() > int64(forgetAfter) {
		l.local.Store(nil)
	}
}
