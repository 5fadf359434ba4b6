package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// The limit of the hot key of a standbyLoad: a burst, and units per second.
const (
	hotBurst = 100
	hotRate  = 1000
)

// standbyLoad is what writers do to a server that is killed or hands over: each counts under a
// key of its own, and all of them ask for a hot limit.
type standbyLoad struct {
	open func() redis.UniversalClient

	stop    chan struct{}
	work    sync.WaitGroup
	began   time.Time
	writers []*standbyWriter
	lastOK  atomic.Int64 // when the call began that was answered last, in nanoseconds since began
}

// standbyWriter is one of them. Its fields are read when it has ended, or while settled holds it.
type standbyWriter struct {
	mu      sync.Mutex // held during a call
	key     string
	acked   int64 // calls of INCR that were answered
	unknown int64 // calls of INCR that failed, of which some may have run
	refused int64 // calls that were certainly not run
	hot     []hotCall
}

// hotCall is an admitted call of the hot limit, in nanoseconds since the load began.
type hotCall struct{ called, returned int64 }

// startStandbyLoad starts so many writers, whose clients open makes.
func startStandbyLoad(t *testing.T, writers int, open func() redis.UniversalClient) *standbyLoad {
	t.Helper()
	l := &standbyLoad{open: open, stop: make(chan struct{}), began: time.Now()}
	for i := range writers {
		w := &standbyWriter{key: fmt.Sprintf("counter-%d", i)}
		l.writers = append(l.writers, w)
		l.work.Go(func() { l.write(w) })
	}
	t.Cleanup(l.end)
	return l
}

// end ends all writers.
func (l *standbyLoad) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.work.Wait()
}

// write calls until the load ends.
func (l *standbyLoad) write(w *standbyWriter) {
	c := l.open()
	defer c.Close() //nolint:errcheck // nothing is sent any more
	for n := 0; ; n++ {
		select {
		case <-l.stop:
			return
		default:
		}
		if !l.once(c, w, n) {
			time.Sleep(time.Millisecond) // a primary that is away refuses at once
		}
	}
}

// once makes one call and notes what came of it.
func (l *standbyLoad) once(c redis.UniversalClient, w *standbyWriter, n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	called := time.Since(l.began)
	if n%4 == 3 {
		reply, err := c.Do(ctx, "CL.THROTTLE", "hot", hotBurst, hotRate, 1, 1).Slice()
		if err == nil && reply[0] == int64(0) {
			w.hot = append(w.hot, hotCall{int64(called), int64(time.Since(l.began))})
		}
		return err == nil
	}
	switch err := c.Incr(ctx, w.key).Err(); {
	case err == nil:
		w.acked++
		l.lastOK.Store(int64(called))
		return true
	case neverRun(err):
		w.refused++
	default:
		w.unknown++
	}
	return false
}

// neverRun reports whether the server has said that it has not run the command.
func neverRun(err error) bool {
	for _, prefix := range []string{"READONLY", "LOADING", "MASTERDOWN", "UNBLOCKED"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

// awaitAnswered waits until a call is answered that began later than since, and returns how long
// after since that is.
func (l *standbyLoad) awaitAnswered(t *testing.T, since time.Duration) time.Duration {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if l.lastOK.Load() > int64(since) {
			return time.Since(l.began) - since
		}
		time.Sleep(time.Millisecond)
	}
	require.Fail(t, "no call is answered")
	return 0
}

// standbyTotal is what came of a load.
type standbyTotal struct{ acked, unknown, lost, doubled int64 }

// check compares what was acknowledged with what the server has. No writer may run.
func (l *standbyLoad) check(t *testing.T, c redis.UniversalClient) (sum standbyTotal) {
	t.Helper()
	for _, w := range l.writers {
		is, err := c.Get(t.Context(), w.key).Int64()
		if errors.Is(err, redis.Nil) {
			is, err = 0, nil
		}
		require.NoError(t, err)
		sum.acked += w.acked
		sum.unknown += w.unknown
		sum.lost += max(0, w.acked-is)
		sum.doubled += max(0, is-w.acked-w.unknown)
	}
	return sum
}

// excess is by how many calls the admitted calls of the hot limit exceed, in the worst span of
// time, the burst, the rate and one, plus what extra allows. It is 0 or less if no span does.
func (l *standbyLoad) excess() float64 {
	var all []hotCall
	for _, w := range l.writers {
		all = append(all, w.hot...)
	}
	return worstExcess(all, hotBurst, hotRate)
}
