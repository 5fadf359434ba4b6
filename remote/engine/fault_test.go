package engine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/bubble"
	"github.com/cellserver/cellserver/remote/engine"
)

// TestFaultsSayWhatBecameOfASwap has a node answer a swap in all kinds of invalid ways.
func TestFaultsSayWhatBecameOfASwap(t *testing.T) {
	for name, test := range map[string]struct {
		reply   string
		reason  string
		notDone bool
	}{
		"loading":            {"-LOADING Redis is loading the dataset in memory\r\n", "LOADING", true},
		"read only":          {"-READONLY You can't write against a read only replica.\r\n", "READONLY", true},
		"out of memory":      {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", "OOM", true},
		"out of memory, 6.2": {"-ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -OOM command not allowed\r\n", "OOM", true},
		"too few replicas":   {"-NOREPLICAS Not enough good replicas to write.\r\n", "NOREPLICAS", true},
		"disk":               {"-MISCONF Redis is configured to save RDB snapshots\r\n", "MISCONF", true},
		"busy":               {"-BUSY Redis is busy running a script.\r\n", "BUSY", true},
		"not allowed":        {"-NOPERM this user has no permissions to run the 'evalsha' command\r\n", "NOPERM", true},
		"cluster down":       {"-CLUSTERDOWN The cluster is down\r\n", "CLUSTERDOWN", true},
		"moved nowhere":      {"-MOVED x\r\n", "MOVED", true},
		"unknown error":      {"-ERR upstream failure with key a\r\n", "ERR", false},
		"silence":            {"", "timeout", false},
		"half a reply":       {"$100\r\nabc", "timeout", false},
		"closed":             {"close", "broken", false},
		"no reply at all":    {"HTTP/1.1 400 Bad Request\r\n\r\n", "malformed", false},
		"another type":       {"*-1\r\n", "malformed", false},
		"huge string":        {"$999999999999\r\n", "malformed", false},
		"huger string":       {"$99999999999999999999\r\n", "malformed", false},
		"huge array":         {"*999999999\r\n", "malformed", false},
		"arrays in arrays":   {strings.Repeat("*131072\r\n", 50), "malformed", false},
		"endless line":       {"+" + strings.Repeat("x", 1<<20), "malformed", false},
		"number is not 1":    {":2\r\n", "malformed", false},
		"negative length":    {"$-2\r\n", "malformed", false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFake(t, healthy)
				e := f.ready(t, func(o *engine.Options) { o.Timeout = 100 * time.Millisecond })
				answer := but(test.reply, "evalsha", "eval")
				f.answer.Store(&answer)
				_, _, err := swap(e, write("a", nil, value(1, "secret")))
				var why *engine.Error
				require.ErrorAs(t, err, &why)
				require.Equal(t, test.reason, why.Reason, "%v", err)
				require.Equal(t, test.notDone, why.NotDone, "%v", err)
				require.NotContains(t, err.Error(), "secret")

				sound := healthy
				f.answer.Store(&sound)
				await(t, "the node is asked again", func() error {
					_, _, err := swap(e, write("a", nil, value(1, "")))
					return err
				})
			})
		})
	}
}

func TestGetIsSentAgainWhenAnIdleConnectionHasEnded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(t, healthy)
		e := f.ready(t)
		for range 20 {
			f.mu.Lock()
			for _, c := range f.conns {
				_ = c.Close()
			}
			ended := len(f.conns)
			f.conns = nil
			f.mu.Unlock()
			_, err := get(e, "a")
			if ended > 1 && err != nil {
				continue // the engine has probed the node meanwhile, over a second connection, which was idle, too
			}
			require.NoError(t, err)
		}
	})
}

// TestNodeThatIsSilentIsAskedNoMore: after some timeouts requests fail at once with the same
// reason, and any number of calls takes no more goroutines.
func TestNodeThatIsSilentIsAskedNoMore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(t, healthy)
		e := f.ready(t, func(o *engine.Options) { o.Timeout = 20 * time.Millisecond })
		silent := func([]string) string { return "" }
		f.answer.Store(&silent)
		await(t, "the node is down", func() error {
			_, err := get(e, "a")
			if n := e.Info().Nodes[0]; n.State != "down" {
				return fmt.Errorf("%s, %w", n.State, err)
			}
			return nil
		})
		outages := e.Outages([]byte("a"))
		before := runtime.NumGoroutine()
		accepted := f.accepted.Load()
		since := time.Now()
		for range 10_000 {
			_, _, err := swap(e, write("a", nil, value(1, "")))
			var why *engine.Error
			require.ErrorAs(t, err, &why)
			require.Equal(t, engine.Timeout, why.Reason)
			require.True(t, why.NotDone)
		}
		took := time.Since(since)
		t.Logf("10,000 answers in %v", took)
		require.LessOrEqual(t, runtime.NumGoroutine(), before+5)
		probes := took/time.Second + 2
		require.LessOrEqual(t, f.accepted.Load()-accepted, 2*int64(probes), "a probe a second")
		require.EqualValues(t, 1, e.Info().Nodes[0].Trips)

		sound := healthy
		f.answer.Store(&sound)
		since = time.Now()
		require.Equal(t, outages, e.Outages([]byte("a")), "it is not over")
		answers(t, e)
		t.Logf("back after %v", time.Since(since))
		require.Equal(t, outages+1, e.Outages([]byte("a")))
	})
}

// TestNodeThatLoadsIsAskedNoMore: no requests go to a node that answers TIME but has not loaded its
// keys yet.
func TestNodeThatLoadsIsAskedNoMore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(t, healthy)
		e := f.ready(t)
		loading := func(words []string) string {
			if words[0] == "time" || words[0] == "info" {
				return healthy(words)
			}
			return "-LOADING Redis is loading the dataset in memory\r\n"
		}
		f.answer.Store(&loading)
		await(t, "the node is down", func() error {
			_, err := get(e, "a")
			if n := e.Info().Nodes[0]; n.State != "down" || n.Reason != "LOADING" {
				return fmt.Errorf("%s, %w", n.State, err)
			}
			return nil
		})
		sound := healthy
		f.answer.Store(&sound)
		answers(t, e)
		require.EqualValues(t, 1, e.Info().Nodes[0].Trips, "probes did not find it well too early")
	})
}

// TestErrorsOfWritesLeaveReadsAlone: a full node still answers reads.
func TestErrorsOfWritesLeaveReadsAlone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(t, but("-OOM command not allowed when used memory > 'maxmemory'.\r\n", "evalsha", "eval"))
		e := f.ready(t)
		for range 100 {
			_, _, err := swap(e, write("a", nil, value(1, "")))
			require.ErrorContains(t, err, "OOM")
		}
		_, err := get(e, "a")
		require.NoError(t, err)
		require.Equal(t, "up", e.Info().Nodes[0].State)
	})
}

// TestFlushTellsWhatWasNotDeleted: an error reply to DEL is the error of the flush, unless the slot of
// the key moves: such a key may remain.
func TestFlushTellsWhatWasNotDeleted(t *testing.T) {
	for reply, want := range map[string]string{
		"-READONLY You can't write against a read only replica.\r\n": "READONLY",
		"-NOPERM this user has no permissions\r\n":                   "NOPERM",
		"-LOADING Redis is loading\r\n":                              "LOADING",
		"-ERR of an unknown kind\r\n":                                "unknown",
		"-MOVED 3 10.0.0.9:6379\r\n":                                 "",
		"-TRYAGAIN Multiple keys request during rehashing\r\n":       "",
		":1\r\n": "",
	} {
		bubble.Test(t, func(t *testing.T) {
			f := newFake(t, func(words []string) string {
				switch words[0] {
				case "scan":
					return "*2\r\n$1\r\n0\r\n*1\r\n$4\r\ncs:a\r\n"
				case "del":
					return reply
				}
				return healthy(words)
			})
			flushed := make(chan error, 1)
			f.ready(t).Flush(func(err error) { flushed <- err })
			if err := <-flushed; want == "" {
				require.NoError(t, err, reply)
			} else {
				require.ErrorContains(t, err, want, reply)
			}
		})
	}
}

func TestCloseAnswersWhatWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(t, healthy)
		e := f.ready(t, func(o *engine.Options) { o.Timeout = time.Minute })
		silent := func([]string) string { return "" }
		f.answer.Store(&silent)
		answered := make(chan error, 2000)
		for range 1000 {
			e.Get([]byte("a"), func(_ []byte, err error) { answered <- err })
			e.Swap(write("b", nil, value(1, "")), func(_ bool, _ []byte, err error) { answered <- err })
		}
		e.Close()
		for range 2000 {
			require.Error(t, <-answered)
		}
		_, err := get(e, "a")
		require.ErrorContains(t, err, engine.Closing)
	})
}

// TestRequestsAreRefusedWhenTooManyWait fills the queue of a node that is silent.
func TestRequestsAreRefusedWhenTooManyWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(t, healthy)
		e := f.ready(t, func(o *engine.Options) { o.Timeout = 5 * time.Second })
		silent := func([]string) string { return "" }
		f.answer.Store(&silent)
		const calls = 70_000
		reasons := make(chan string, calls)
		for range calls {
			e.Get([]byte("a"), func(_ []byte, err error) {
				if why, ok := err.(*engine.Error); ok { //nolint:errorlint // the error is not wrapped
					reasons <- why.Reason
					return
				}
				reasons <- "none"
			})
		}
		require.Equal(t, engine.Overload, <-reasons)
		sound := healthy
		f.answer.Store(&sound)
		e.Close()
		for range calls - 1 {
			<-reasons
		}
	})
}

func TestHostsThatAreNoClusterAreToldOf(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		one := newFake(t, healthy)
		two := one.another(healthy)
		log := &lines{}
		e := engineAt(t, "redis://"+one.addr+","+two.addr, one.dial, logTo(log))
		await(t, "the fault", func() error {
			if !log.contains("they are no cluster") {
				return fmt.Errorf("%s", log)
			}
			return nil
		})
		require.Contains(t, e.Info().Fault, "they are no cluster")
	})
}

// TestClusterThatNamesItsNodesOddly has a node that reports itself without a host, or with one that
// only it can reach.
func TestClusterThatNamesItsNodesOddly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for _, host := range []string{"", "?", "127.0.0.1"} {
			var port string
			f := newFake(t, func(words []string) string {
				switch {
				case words[0] == "info":
					return bulk("cluster_enabled:1\r\n")
				case words[0] == "cluster":
					return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + bulk(host) + ":" + port + "\r\n"
				}
				return healthy(words)
			})
			_, port, _ = strings.Cut(f.addr, ":")
			e := f.ready(t)
			require.Equal(t, f.addr, e.Info().Nodes[0].Addr)
		}
	})
}

// TestSlotWithoutANodeIsClusterdown has a cluster in which only some slots are served.
func TestSlotWithoutANodeIsClusterdown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var port string
		f := newFake(t, func(words []string) string {
			switch {
			case words[0] == "info":
				return bulk("cluster_enabled:1\r\n")
			case words[0] == "cluster":
				return "*1\r\n*3\r\n:0\r\n:1000\r\n*2\r\n" + bulk("127.0.0.1") + ":" + port + "\r\n"
			}
			return healthy(words)
		})
		_, port, _ = strings.Cut(f.addr, ":")
		e := f.engineAt(t)
		await(t, "a slot that is served", func() error {
			for i := range 1000 {
				if key := fmt.Sprint("k", i); e.Slot([]byte(key)) <= 1000 {
					_, err := get(e, key)
					return err
				}
			}
			return nil
		})
		for i := range 1000 {
			if key := fmt.Sprint("k", i); e.Slot([]byte(key)) > 1000 {
				_, _, err := swap(e, write(key, nil, value(1, "")))
				var why *engine.Error
				require.ErrorAs(t, err, &why)
				require.Equal(t, "CLUSTERDOWN", why.Reason)
				require.True(t, why.NotDone)
				return
			}
		}
	})
}
