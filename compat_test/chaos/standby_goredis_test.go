package chaos_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/internal/storetest"
)

// goredisStack is go-redis as a stack, in the process of the test.
type goredisStack struct {
	client redis.UniversalClient
	ending chan struct{}
	work   sync.WaitGroup
	told   chan struct{}

	mu       sync.Mutex // guards what follows
	done     stackReport
	last     int64 // when a call was answered last
	markedAt int64 // 0: there was no mark
}

// goredisCallers is how many callers share the pace.
const goredisCallers = 2

// startGoredis starts a stack that ends with the test.
func startGoredis(t *testing.T, sentinels []string) *goredisStack {
	t.Helper()
	s := &goredisStack{
		// A call is made once: the count needs to know how often it ran.
		client: redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: storetest.MasterName, SentinelAddrs: sentinels, MaxRetries: -1, ContextTimeoutEnabled: true,
		}),
		ending: make(chan struct{}), told: make(chan struct{}, 1),
		done: stackReport{Library: "go-redis", Errors: map[string]int{}}, last: monotonic(),
	}
	for range goredisCallers {
		s.work.Go(s.call)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *goredisStack) stop() {
	select {
	case <-s.ending:
		return
	default:
		close(s.ending)
	}
	s.work.Wait()
	_ = s.client.Close()
}

// call makes calls at the pace until the end.
func (s *goredisStack) call() {
	pace := time.NewTicker(goredisCallers * time.Second / stackPace)
	defer pace.Stop()
	for made := 1; ; made++ {
		select {
		case <-s.ending:
			return
		case <-pace.C:
			s.once(made%4 == 0)
		}
	}
}

func (s *goredisStack) once(hot bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	called := monotonic()
	admitted := false
	var err error
	if hot {
		var reply []any
		reply, err = s.client.Do(ctx, anys(hotCommand())...).Slice()
		admitted = err == nil && reply[0] == int64(0)
	} else {
		err = s.client.Incr(ctx, s.key()).Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed(err, hot)
		return
	}
	returned := monotonic()
	s.done.Longest = max(s.done.Longest, float64(returned-s.last)/1e6)
	s.last = returned
	if !hot {
		s.done.Acked++
	} else if admitted {
		s.done.Hot = append(s.done.Hot, [2]int64{called, returned})
	}
	if s.markedAt != 0 && called >= s.markedAt {
		s.markedAt = 0
		s.told <- struct{}{}
	}
}

// failed notes a call that failed. The caller holds mu.
func (s *goredisStack) failed(err error, hot bool) {
	dial := new(net.OpError)
	away := errors.As(err, &dial) && dial.Op == "dial" // nothing was sent
	switch {
	case hot:
		s.done.Errors["hot"]++
	case away || neverRun(err):
		s.done.Errors["refused"]++
		s.done.Refused++
	default:
		s.done.Errors[err.Error()]++
		s.done.Unknown++
	}
}

// anys are the words as a command of go-redis.
func anys(words []string) (all []any) {
	for _, w := range words {
		all = append(all, w)
	}
	return all
}

func (s *goredisStack) name() string { return s.done.Library }

func (s *goredisStack) key() string { return "counter-go-redis" }

func (s *goredisStack) mark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.markedAt = monotonic()
}

func (s *goredisStack) answered() <-chan struct{} { return s.told }

func (s *goredisStack) end(*testing.T) stackReport {
	s.stop()
	return s.done
}
