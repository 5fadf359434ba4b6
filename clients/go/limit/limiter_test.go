package limit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/limit"
	"github.com/cellserver/cellserver/clients/go/limittest"
)

var noon = time.UnixMilli(1_790_000_000_000)

// scripted answers calls with its replies in their order, the last one again and again. An error is returned as one.
type scripted struct {
	replies []any
	words   []string
}

func (s *scripted) Do(_ context.Context, words []string) (any, error) {
	s.words = append(s.words, strings.Join(words, " "))
	next := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	if err, ok := next.(error); ok {
		return nil, err
	}
	return next, nil
}

func five(n ...int64) []any {
	list := make([]any, len(n))
	for i := range n {
		list[i] = n[i]
	}
	return list
}

// limiter returns a limiter whose calls after the one at start are answered with replies.
func limiter(t *testing.T, o limit.Options, replies ...any) (*limit.Limiter, *scripted) {
	t.Helper()
	s := &scripted{replies: append([]any{five(0, 2, 2, -1, 0)}, replies...)}
	o.Client, o.Policy, o.Log = s, "api", slog.New(slog.DiscardHandler)
	if o.OnUnavailable == 0 {
		o.OnUnavailable = limit.Deny
	}
	l, err := limit.New(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l, s
}

func TestResults(t *testing.T) {
	var seen []limit.Event
	l, s := limiter(t, limit.Options{Class: "batch", Observe: func(e limit.Event) { seen = append(seen, e) }}, five(0, 2, 1, -1, 60_000), five(1, 2, 0, 58_000, 118_000))
	r, err := l.Allow(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, limit.Result{
		Allowed: true, Granted: 1, Numbers: limit.Numbers{Limit: 2, Remaining: 1, RetryAfter: limit.None, ResetAfter: time.Minute},
		Limits: []limit.Numbers{{Limit: 2, Remaining: 1, RetryAfter: limit.None, ResetAfter: time.Minute}}, Source: limit.Server,
	}, r)
	r, err = l.Allow(t.Context(), "acme")
	require.NoError(t, err)
	require.False(t, r.Allowed)
	require.Equal(t, 58*time.Second, r.RetryAfter)
	r, err = l.Allow(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, limit.Cache, r.Source)
	require.Equal(t, []string{
		"RL.USE api 192.0.2.1 0 CLASS batch MS WITHDETAILS", "RL.USE api acme 1 CLASS batch MS WITHDETAILS", "RL.USE api acme 1 CLASS batch MS WITHDETAILS",
	}, s.words)
	require.Len(t, seen, 3)
	require.Equal(t, limit.Cache, seen[2].Source)
}

func TestPartial(t *testing.T) {
	l, _ := limiter(t, limit.Options{}, five(2, 3, 0, 500, 1000))
	r, err := l.Take(t.Context(), limit.Call{Key: "k", Cost: 5, Mode: limit.Partial})
	require.NoError(t, err)
	require.False(t, r.Allowed)
	require.EqualValues(t, 3, r.Granted)
}

func TestFaultsOfTheProgramAreErrors(t *testing.T) {
	for _, reply := range []limit.ReplyError{"WRONGTYPE Operation", "ERR syntax error", "IDREUSED ID", "NOCLASS No such class"} {
		l, _ := limiter(t, limit.Options{OnUnavailable: limit.Allow}, reply)
		r, err := l.Allow(t.Context(), "k")
		require.ErrorIs(t, err, reply)
		require.False(t, r.Allowed)
	}
	l, _ := limiter(t, limit.Options{OnUnavailable: limit.Allow}, "OK")
	_, err := l.Allow(t.Context(), "k")
	require.Error(t, err)
}

func TestReasons(t *testing.T) {
	for reply, reason := range map[error]string{
		limit.ReplyError("LOADING wait"): "LOADING", limit.ReplyError("NOPOLICY No such policy"): "NOPOLICY",
		context.DeadlineExceeded: "timeout", redis.ErrPoolTimeout: "timeout", errors.New("EOF"): "broken",
	} {
		var seen limit.Event
		l, _ := limiter(t, limit.Options{OnUnavailable: limit.Deny, Observe: func(e limit.Event) { seen = e }}, reply)
		r, err := l.Allow(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, limit.Unavailable, r.Source)
		require.False(t, r.Allowed)
		require.Equal(t, reason, seen.Reason)
	}
}

func TestRetryOnlyWithID(t *testing.T) {
	broken := errors.New("connection reset")
	l, s := limiter(t, limit.Options{}, broken, five(0, 2, 1, -1, 0))
	r, err := l.Allow(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, limit.Unavailable, r.Source)
	require.Len(t, s.words, 2)

	l, s = limiter(t, limit.Options{RandomID: true}, broken, five(0, 2, 1, -1, 0))
	r, err = l.Allow(t.Context(), "k")
	require.NoError(t, err)
	require.True(t, r.Allowed)
	require.Len(t, s.words, 3)
	require.Equal(t, s.words[1], s.words[2], "with the same ID")

	l, s = limiter(t, limit.Options{RandomID: true}, broken)
	r, err = l.Allow(t.Context(), "k")
	require.NoError(t, err)
	require.False(t, r.Allowed)
	require.Len(t, s.words, 3, "once")

	l, s = limiter(t, limit.Options{RandomID: true}, context.DeadlineExceeded)
	_, err = l.Allow(t.Context(), "k")
	require.NoError(t, err)
	require.Len(t, s.words, 2, "not after a time-out")
}

func TestServerWithoutID(t *testing.T) {
	l, s := limiter(t, limit.Options{RandomID: true}, limit.ReplyError("ERR syntax error"), five(0, 2, 1, -1, 0))
	for range 2 {
		r, err := l.Allow(t.Context(), "k")
		require.NoError(t, err)
		require.True(t, r.Allowed)
	}
	require.Len(t, s.words, 4)
	require.Contains(t, s.words[1], " ID ")
	require.NotContains(t, s.words[2]+s.words[3], " ID ")
}

func TestCallerThatGoesIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, _ := limiter(t, limit.Options{}, context.Canceled)
	for range 9 {
		_, err := l.Allow(ctx, "k")
		require.ErrorIs(t, err, context.Canceled)
	}
	r, err := l.Allow(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, limit.Unavailable, r.Source, "it was asked, since the breaker is closed")
}

// panicking is a client that panics if it is told so.
type panicking struct {
	*limittest.Fake
	now bool
}

func (p *panicking) Do(ctx context.Context, words []string) (any, error) {
	if p.now {
		panic("a fault of the client")
	}
	return p.Fake.Do(ctx, words)
}

// TestClientThatPanicsInTheProbe: the next call is the probe, as after a caller that goes.
func TestClientThatPanicsInTheProbe(t *testing.T) {
	client := &panicking{Fake: limittest.New(noon)}
	require.NoError(t, client.Policy("api", "TB 2 1 60"))
	o := client.Options(limit.Options{Policy: "api", OnUnavailable: limit.Deny, Log: slog.New(slog.DiscardHandler)})
	o.Client = client
	l, err := limit.New(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	client.GoAway()
	for range 5 {
		_, err := l.Allow(t.Context(), "k")
		require.NoError(t, err)
	}
	client.ComeBack()
	client.Advance(2 * time.Second)
	client.now = true
	require.Panics(t, func() { _, _ = l.Allow(t.Context(), "k") })
	client.now = false
	r, err := l.Allow(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, limit.Server, r.Source)
}

func TestStart(t *testing.T) {
	var log bytes.Buffer
	start := func(reply any, o limit.Options) error {
		o.Client, o.Policy, o.Log = &scripted{replies: []any{reply}}, "api", slog.New(slog.NewTextHandler(&log, nil))
		l, err := limit.New(t.Context(), o)
		if err == nil {
			require.NoError(t, l.Close())
		}
		return err
	}
	one := func() int { return 1 }
	for _, e := range []limit.ReplyError{"NOPOLICY No", "NOPERM No", "NOAUTH No", "WRONGPASS No", "NOCLASS No", "ERR unknown command"} {
		require.ErrorIs(t, start(e, limit.Options{OnUnavailable: limit.Allow}), e)
	}
	require.NoError(t, start(limit.ReplyError("ERR a CC clause needs MEMBER"), limit.Options{OnUnavailable: limit.Allow}))
	require.Empty(t, log.String())
	require.NoError(t, start(context.DeadlineExceeded, limit.Options{OnUnavailable: limit.Allow}))
	require.Contains(t, log.String(), "limiter not available at start")
	require.ErrorIs(t, start(context.DeadlineExceeded, limit.Options{OnUnavailable: limit.Local, Instances: one}), limit.ErrOptions)
	require.NoError(t, start(context.DeadlineExceeded, limit.Options{OnUnavailable: limit.Local, Instances: one, Fallback: []string{"TB 2 1 1"}}))
}

func TestOptions(t *testing.T) {
	client := &scripted{replies: []any{five(0, 2, 2, -1, 0)}}
	for name, o := range map[string]limit.Options{
		"nothing":          {},
		"no server":        {Policy: "api", OnUnavailable: limit.Allow},
		"two servers":      {Policy: "api", OnUnavailable: limit.Allow, Client: client, URL: "redis://x"},
		"a wrong URL":      {Policy: "api", OnUnavailable: limit.Allow, URL: "http://x"},
		"no policy":        {Client: client, OnUnavailable: limit.Allow},
		"a line in Policy": {Client: client, OnUnavailable: limit.Allow, Policy: "api\r\nX: y"},
		"a quote in Name":  {Client: client, OnUnavailable: limit.Allow, Name: `a"b`, Limits: []string{"TB 1 1 1"}},
		"both":             {Client: client, OnUnavailable: limit.Allow, Policy: "api", Limits: []string{"TB 1 1 1"}},
		"no choice":        {Client: client, Policy: "api"},
		"no instances":     {Client: client, Policy: "api", OnUnavailable: limit.Local},
		"a short deadline": {Client: client, Policy: "api", OnUnavailable: limit.Allow, Deadline: time.Millisecond},
		"a long deadline":  {Client: client, Policy: "api", OnUnavailable: limit.Allow, Deadline: 2 * time.Second},
		"no clause":        {Client: client, Limits: []string{"TB 1"}, OnUnavailable: limit.Allow},
		"no fallback":      {Client: client, Policy: "api", OnUnavailable: limit.Allow, Fallback: []string{"x"}},
		"class and keep":   {Client: client, Policy: "api", OnUnavailable: limit.Allow, Class: "a", Keep: "1"},
		"inline and class": {Client: client, Limits: []string{"TB 1 1 1"}, OnUnavailable: limit.Allow, Class: "a"},
	} {
		_, err := limit.New(t.Context(), o)
		require.ErrorIs(t, err, limit.ErrOptions, name)
	}
	_, err := limit.GoRedis(redis.NewClient(&redis.Options{}))
	require.ErrorIs(t, err, limit.ErrOptions)
}

func TestOutageIsLoggedOnceAMinute(t *testing.T) {
	fake := limittest.New(noon)
	require.NoError(t, fake.Policy("api", "TB 2 1 60"))
	var log bytes.Buffer
	l, err := limit.New(t.Context(), fake.Options(limit.Options{Policy: "api", OnUnavailable: limit.Allow, Log: slog.New(slog.NewTextHandler(&log, nil))}))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	fake.GoAway()
	for range 100 {
		_, err := l.Allow(t.Context(), "secret-key")
		require.NoError(t, err)
		fake.Advance(time.Second)
	}
	require.Equal(t, 2, strings.Count(log.String(), "\n"))
	require.NotContains(t, log.String(), "secret-key")
}

// TestLocalOutlivesSingleAnswers: among lost replies, the limiter in the process does not begin anew with each.
func TestLocalOutlivesSingleAnswers(t *testing.T) {
	fake := limittest.New(noon)
	require.NoError(t, fake.Policy("api", "TB 1000 1 3600"))
	l, err := limit.New(t.Context(), fake.Options(limit.Options{
		Policy: "api", OnUnavailable: limit.Local, Instances: func() int { return 500 }, Log: slog.New(slog.DiscardHandler),
	}))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	passed := 0
	for range 20 {
		fake.GoAway()
		r, err := l.Allow(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, limit.InProcess, r.Source)
		if r.Allowed {
			passed++
		}
		fake.ComeBack()
		for range 2 {
			_, err = l.Allow(t.Context(), "k")
			require.NoError(t, err)
		}
	}
	require.Equal(t, 2, passed, "its share is 2")
}
