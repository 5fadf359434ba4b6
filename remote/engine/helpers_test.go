package engine_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cellserver/cellserver/remote/engine"
)

// engineAt opens the engine at url, and closes it at the end of the test, when all goroutines must
// have ended. It does not wait for an answer.
func engineAt(t testing.TB, url string, change ...func(*engine.Options)) *engine.Engine {
	t.Helper()
	before := goleak.IgnoreCurrent()
	at, err := engine.ParseAddress(url)
	require.NoError(t, err)
	start := time.Now()
	o := engine.Options{
		Address: at, Prefix: "cs:", Timeout: time.Second, MaxSkew: 250 * time.Millisecond,
		Elapsed: func() time.Duration { return time.Since(start) },
		Log:     slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}
	e, err := engine.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		e.Close()
		goleak.VerifyNone(t, before,
			// Goroutines of a node that was restarted end with the test.
			goleak.IgnoreAnyFunction("github.com/cellserver/cellserver/internal/storetest.launch.func1"),
			goleak.IgnoreAnyFunction("os/exec.(*Cmd).writerDescriptor.func1"))
	})
	return e
}

// ready opens the engine at url and waits until it answers.
func ready(t testing.TB, url string, change ...func(*engine.Options)) *engine.Engine {
	t.Helper()
	e := engineAt(t, url, change...)
	answers(t, e)
	return e
}

// answers waits until the engine answers.
func answers(t testing.TB, e *engine.Engine) {
	t.Helper()
	await(t, "the engine answers", func() error {
		_, err := get(e, "ready?")
		return err
	})
}

// await repeats a request until there is no error. In a bubble the pauses are virtual.
func await(t testing.TB, what string, ask func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(end), "%s: %v", what, err)
	}
}

func get(e *engine.Engine, key string) (raw []byte, err error) {
	var done sync.WaitGroup
	done.Add(1)
	e.Get([]byte(key), func(b []byte, e error) { raw, err = b, e; done.Done() })
	done.Wait()
	return raw, err
}

func swap(e *engine.Engine, w engine.Write) (applied bool, now []byte, err error) {
	var done sync.WaitGroup
	done.Add(1)
	e.Swap(w, func(a bool, b []byte, e error) { applied, now, err = a, b, e; done.Done() })
	done.Wait()
	return applied, now, err
}

func swapAll(e *engine.Engine, ws ...engine.Write) (applied bool, now [][]byte, err error) {
	var done sync.WaitGroup
	done.Add(1)
	e.SwapAll(ws, func(a bool, b [][]byte, e error) { applied, now, err = a, b, e; done.Done() })
	done.Wait()
	return applied, now, err
}

// value returns a value with the tag of that number.
func value(tag int, rest string) []byte { return fmt.Appendf(nil, "%012d%s", tag, rest) }

func write(key string, old, now []byte) engine.Write {
	return engine.Write{Key: []byte(key), Old: old, New: now, Keep: time.Minute}
}

// lines is a log that several goroutines may write to.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) contains(s string) bool { return strings.Contains(l.String(), s) }

func logTo(l *lines) func(*engine.Options) {
	return func(o *engine.Options) { o.Log = slog.New(slog.NewTextHandler(l, nil)) }
}
