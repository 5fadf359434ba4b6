package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/remote/engine"
)

// eval runs a script for a second at most.
func eval(t *testing.T, e *engine.Engine) (any, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return e.Eval(ctx, "return 'a text'", []string{"{p}:a", "{p}:b"}, []string{"1", ""})
}

// TestEvalReturnsReplies has a node answer a script in all kinds of ways.
func TestEvalReturnsReplies(t *testing.T) {
	for reply, want := range map[string]any{
		bulk("a"):        "a",
		"+OK\r\n":        "OK",
		":7\r\n":         int64(7),
		"$-1\r\n":        nil,
		"*-1\r\n":        nil,
		"*0\r\n":         []any{},
		"*1\r\n$-1\r\n":  []any{nil},
		"*1\r\n*1\r\n:1": nil, // never ends
	} {
		bubble.Test(t, func(t *testing.T) {
			f := newFake(t, healthy)
			e := f.ready(t)
			answer := but(reply, "evalsha")
			f.answer.Store(&answer)
			got, err := eval(t, e)
			if strings.HasSuffix(reply, ":1") {
				var why *engine.Error
				require.ErrorAs(t, err, &why)
				require.Equal(t, engine.Timeout, why.Reason)
				require.False(t, why.NotDone)
				return
			}
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestEvalSendsTheTextIfTheNodeDoesNotHaveIt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var words atomic.Pointer[[]string]
		f := newFake(t, func(is []string) string {
			switch is[0] {
			case "evalsha":
				return "-NOSCRIPT No matching script.\r\n"
			case "eval":
				words.Store(&is)
				return bulk("done")
			}
			return healthy(is)
		})
		got, err := eval(t, f.ready(t))
		require.NoError(t, err)
		require.Equal(t, "done", got)
		require.Equal(t, []string{"eval", "return 'a text'", "2", "cs:{p}:a", "cs:{p}:b", "1", ""}, *words.Load())
	})
}

func TestEvalGoesWhereTheSlotIs(t *testing.T) {
	for _, word := range []string{"MOVED", "ASK"} {
		bubble.Test(t, func(t *testing.T) {
			asked, tries := atomic.Int64{}, atomic.Int64{}
			f := newFake(t, healthy)
			other := f.another(func(words []string) string {
				switch words[0] {
				case "asking":
					asked.Add(1)
					return "+OK\r\n"
				case "evalsha":
					if tries.Add(1) == 1 {
						return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
					}
					return bulk("there")
				}
				return healthy(words)
			})
			e := f.ready(t)
			answer := but("-"+word+" 3 "+other.addr+"\r\n", "evalsha")
			f.answer.Store(&answer)
			got, err := eval(t, e)
			require.NoError(t, err)
			require.Equal(t, "there", got)
			require.EqualValues(t, 2, tries.Load())
			require.Equal(t, word == "ASK", asked.Load() == 2)
		})
	}
}

// TestFaultsSayWhatBecameOfAScript has a node not run a script, or not say whether it has.
func TestFaultsSayWhatBecameOfAScript(t *testing.T) {
	for name, test := range map[string]struct {
		reply, reason string
		notDone       bool
	}{
		"silence":       {"", engine.Timeout, false},
		"closed":        {"close", engine.Broken, false},
		"no reply":      {"HTTP/1.1 400 Bad Request\r\n\r\n", engine.Malformed, false},
		"huge":          {"$999999999999\r\n", engine.Malformed, false},
		"read only":     {"-READONLY You can't write against a read only replica.\r\n", "READONLY", true},
		"loading":       {"-LOADING Redis is loading\r\n", "LOADING", true},
		"always moved":  {"-MOVED 3 127.0.0.1:1\r\n", engine.Unreachable, true},
		"moved nowhere": {"-MOVED x\r\n", "MOVED", true},
		"moving":        {"-TRYAGAIN Multiple keys request during rehashing of slot\r\n", "TRYAGAIN", true},
		"no script":     {"-NOSCRIPT No matching script.\r\n", "NOSCRIPT", true},
		"unknown":       {"-ERR the key a is odd\r\n", engine.Unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFake(t, healthy)
				e := f.ready(t)
				answer := but(test.reply, "evalsha", "eval")
				f.answer.Store(&answer)
				start := time.Now()
				got, err := eval(t, e)
				require.LessOrEqual(t, time.Since(start), 1100*time.Millisecond)
				require.Nil(t, got)
				var why *engine.Error
				require.ErrorAs(t, err, &why)
				if test.reason != engine.Unreachable { // what a simulated network says may change
					require.Equal(t, test.reason, why.Reason, "%v", err)
				}
				require.Equal(t, test.notDone, why.NotDone, "%v", err)
				require.NotContains(t, err.Error(), "odd")
			})
		})
	}
}

// TestRightsThatAreMissingAreNamed: only the name of a command is taken from a reply.
func TestRightsThatAreMissingAreNamed(t *testing.T) {
	for reply, want := range map[string]string{
		"-NOPERM User cs has no permissions to run the 'evalsha' command\r\n":                                     "NOPERM: the user of the store may not run the command evalsha",
		"-ERR ACL failure in script: User cs has no permissions to run the 'cluster|slots' command script: a\r\n": "NOPERM: the user of the store may not run the command cluster|slots",
		"-ERR User cs has no permissions to run the 'a key' command\r\n":                                          "ERR: the store replied an error that is unknown",
		"-ERR User cs has no permissions to run the 'get\r\n":                                                     "ERR: the store replied an error that is unknown",
		"-ERR no permissions to run the '" + strings.Repeat("x", 33) + "'\r\n":                                    "ERR: the store replied an error that is unknown",
	} {
		bubble.Test(t, func(t *testing.T) {
			f := newFake(t, healthy)
			e := f.ready(t)
			answer := but(reply, "evalsha", "eval")
			f.answer.Store(&answer)
			_, err := eval(t, e)
			require.EqualError(t, err, want)
		})
	}
}

func TestEvalBeforeAndAfter(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(t, healthy)
		f.listener.Close()
		e := f.engineAt(t)
		notDone := func(reason string, err error) {
			t.Helper()
			var why *engine.Error
			require.ErrorAs(t, err, &why)
			require.Equal(t, reason, why.Reason)
			require.True(t, why.NotDone)
		}
		_, err := eval(t, e)
		notDone(engine.Starting, err)
		_, err = e.Eval(t.Context(), "return 1", nil, nil)
		notDone(engine.Unknown, err)

		e = newFake(t, healthy).ready(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = e.Eval(ctx, "return 1", []string{"a"}, nil)
		notDone(engine.Timeout, err)
		got, err := e.Eval(t.Context(), "return 1", []string{"a"}, nil)
		require.NoError(t, err)
		require.EqualValues(t, 1, got)
		e.Close()
		_, err = eval(t, e)
		notDone(engine.Closing, err)
	})
}

// TestHiddenKeysAreLeftOut has a node with three keys, two of which are the servers' own.
func TestHiddenKeysAreLeftOut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var deleted atomic.Pointer[[]string]
		deleted.Store(&[]string{})
		f := newFake(t, func(words []string) string {
			switch words[0] {
			case "scan":
				return "*2\r\n$1\r\n0\r\n*3\r\n" + bulk("cs:{policies}:head") + bulk("cs:a") + bulk("cs:{policies}:00")
			case "get":
				return bulk("of " + words[1])
			case "del":
				all := append(*deleted.Load(), words[1:]...)
				deleted.Store(&all)
				return ":1\r\n"
			}
			return healthy(words)
		})
		for hidden, n := range map[string]int{"{policies}:": 1, "": 3} {
			deleted.Store(&[]string{})
			e := f.ready(t, func(o *engine.Options) { o.Hidden = hidden })
			keys, done := make(chan []engine.Found, 1), make(chan error, 1)
			e.Scan(0, 10, func(_ uint64, found []engine.Found, err error) { keys <- found; done <- err })
			require.Len(t, <-keys, n)
			require.NoError(t, <-done)
			counted := make(chan int64, 1)
			e.Count(func(n int64, err error) { counted <- n; done <- err })
			require.EqualValues(t, n, <-counted)
			require.NoError(t, <-done)
			e.Flush(func(err error) { done <- err })
			require.NoError(t, <-done)
			require.Len(t, *deleted.Load(), n)
			require.Contains(t, *deleted.Load(), "cs:a")
		}
	})
}
