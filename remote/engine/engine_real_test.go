//go:build real

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/remote/engine"
)

// everywhere runs f with a single node and with a cluster.
func everywhere(t *testing.T, f func(t *testing.T, url string)) {
	each := storetest.Each
	if testing.Short() {
		each = func(t *testing.T, f func(*testing.T, storetest.Engine)) { f(t, storetest.Best(t)) }
	}
	each(t, func(t *testing.T, e storetest.Engine) {
		t.Run("single", func(t *testing.T) { f(t, e.Single(t, storetest.Options{}).URL()) })
		if testing.Short() {
			return // forming a cluster takes seconds
		}
		t.Run("cluster", func(t *testing.T) { f(t, e.Cluster(t, 3, 0, storetest.Options{}).URL()) })
		t.Run("any node of a cluster", func(t *testing.T) {
			url, _, _ := strings.Cut(e.Cluster(t, 2, 0, storetest.Options{}).URL(), ",")
			f(t, url)
		})
	})
}

func TestSwapComparesAndSets(t *testing.T) {
	everywhere(t, func(t *testing.T, url string) {
		e := ready(t, url)
		raw, err := get(e, "a")
		require.NoError(t, err)
		require.Nil(t, raw)
		step := func(w engine.Write, applied bool, now []byte) {
			t.Helper()
			a, n, err := swap(e, w)
			require.NoError(t, err)
			require.Equal(t, applied, a)
			require.Equal(t, now, n)
		}
		one, two, three := value(1, "one\r\n\x00"), value(2, "two"), value(3, "")
		step(write("a", one, two), false, nil) // the key does not exist
		step(write("a", nil, one), true, nil)
		step(write("a", nil, one), true, nil) // sent again
		step(write("a", nil, two), false, one)
		step(write("a", one, two), true, nil)
		step(write("a", one, three), false, two)
		raw, err = get(e, "a")
		require.NoError(t, err)
		require.Equal(t, two, raw)
		step(write("a", one, nil), false, two)
		step(write("a", two, nil), true, nil)
		raw, err = get(e, "a")
		require.NoError(t, err)
		require.Nil(t, raw)
	})
}

func TestSwapAllComparesAllBeforeItWrites(t *testing.T) {
	everywhere(t, func(t *testing.T, url string) {
		e := ready(t, url)
		require.Equal(t, e.Slot([]byte("{t}a")), e.Slot([]byte("{t}b")))
		one, two, three := value(1, "one"), value(2, "two"), value(3, "three")
		applied, now, err := swapAll(e, write("{t}a", nil, one), write("{t}b", nil, two))
		require.NoError(t, err)
		require.True(t, applied)
		require.Nil(t, now)
		applied, now, err = swapAll(e, write("{t}a", one, three), write("{t}b", one, three), write("{t}c", nil, one))
		require.NoError(t, err)
		require.False(t, applied)
		require.Equal(t, [][]byte{one, two, nil}, now)
		applied, _, err = swapAll(e, write("{t}a", one, three), write("{t}b", two, nil))
		require.NoError(t, err)
		require.True(t, applied)
		raw, err := get(e, "{t}a")
		require.NoError(t, err)
		require.Equal(t, three, raw)
		raw, err = get(e, "{t}b")
		require.NoError(t, err)
		require.Nil(t, raw)
	})
}

// TestManySessionsShareTheEngine: one caller writes each key in a chain of swaps, each of which
// needs the one before.
func TestManySessionsShareTheEngine(t *testing.T) {
	const keys, writes = 300, 20
	everywhere(t, func(t *testing.T, url string) {
		e := ready(t, url, func(o *engine.Options) { o.Timeout = 10 * time.Second })
		var all sync.WaitGroup
		failed := make(chan error, keys)
		for k := range keys {
			all.Add(1)
			key := fmt.Sprint("key", k)
			var next func(n int)
			next = func(n int) {
				if n > writes {
					all.Done()
					return
				}
				var old []byte
				if n > 1 {
					old = value(n-1, "")
				}
				e.Swap(write(key, old, value(n, "")), func(applied bool, now []byte, err error) {
					if err != nil || !applied {
						failed <- fmt.Errorf("write %d: %v, there is %q: %w", n, applied, now, err)
						all.Done()
						return
					}
					next(n + 1)
				})
			}
			next(1)
		}
		all.Wait()
		close(failed)
		require.NoError(t, <-failed)
		for k := range keys {
			raw, err := get(e, fmt.Sprint("key", k))
			require.NoError(t, err)
			require.Equal(t, value(writes, ""), raw)
		}
	})
}

func TestValuesOfOthersAreLeftAlone(t *testing.T) {
	n := storetest.Best(t).Single(t, storetest.Options{})
	n.Do("SET", "cs:text", "1")
	n.Do("SET", "cs:empty", "")
	n.Do("RPUSH", "cs:list", "1")
	n.Do("SETRANGE", "cs:long", 100<<20, "1")
	e := ready(t, n.URL())
	raw, err := get(e, "text")
	require.NoError(t, err)
	require.Equal(t, []byte("1"), raw)
	raw, err = get(e, "empty")
	require.NoError(t, err)
	require.Nil(t, raw, "reading it does not tell it from no key")
	applied, _, err := swap(e, write("empty", nil, value(1, "")))
	require.NoError(t, err)
	require.True(t, applied)
	n.Do("SET", "cs:empty", "")
	applied, _, err = swapAll(e, write("{empty}", nil, value(1, "")), write("empty", nil, value(1, "")))
	require.NoError(t, err)
	require.True(t, applied)
	raw, err = get(e, "empty")
	require.NoError(t, err)
	require.Equal(t, value(1, ""), raw)
	applied, now, err := swap(e, write("text", nil, value(1, "")))
	require.NoError(t, err)
	require.False(t, applied, "a reply that is the text 1 is not the number")
	require.Equal(t, []byte("1"), now)
	var wrong *engine.Error
	for _, key := range []string{"list", "long"} {
		_, err = get(e, key)
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "WRONGTYPE", wrong.Reason)
	}
	_, _, err = swap(e, write("list", nil, value(1, "")))
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "WRONGTYPE", wrong.Reason)
	require.True(t, wrong.NotDone)
}

func TestScriptsThatTheNodeForgotAreSentAgain(t *testing.T) {
	n := storetest.Best(t).Single(t, storetest.Options{})
	e := ready(t, n.URL())
	for i := range 50 {
		n.Do("SCRIPT", "FLUSH")
		var all sync.WaitGroup
		var mu sync.Mutex
		for k := range 40 {
			all.Add(2)
			done := func(applied bool, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err != nil || !applied {
					t.Errorf("%v %v", applied, err)
				}
				all.Done()
			}
			e.Swap(write(fmt.Sprint(i, k), nil, value(1, "")), func(a bool, _ []byte, err error) { done(a, err) })
			e.SwapAll([]engine.Write{write(fmt.Sprint("x", i, k), nil, value(1, ""))}, func(a bool, _ [][]byte, err error) { done(a, err) })
		}
		all.Wait()
	}
}

func TestScanCountAndFlushStayWithinThePrefix(t *testing.T) {
	everywhere(t, func(t *testing.T, url string) {
		e := ready(t, url)
		want := map[string]string{}
		for i := range 250 {
			key := fmt.Sprint("k", i)
			want[key] = string(value(i, key))
			applied, _, err := swap(e, write(key, nil, []byte(want[key])))
			require.NoError(t, err)
			require.True(t, applied)
		}
		other := ready(t, url, func(o *engine.Options) { o.Prefix = "c[s]*:" })
		_, _, err := swap(other, write("mine", nil, value(1, "")))
		require.NoError(t, err)

		got := map[string]string{}
		for cursor, steps := uint64(0), 0; ; steps++ {
			require.Less(t, steps, 100)
			var found []engine.Found
			var err error
			var done sync.WaitGroup
			done.Add(1)
			e.Scan(cursor, 20, func(next uint64, f []engine.Found, e error) { cursor, found, err = next, f, e; done.Done() })
			done.Wait()
			require.NoError(t, err)
			for _, f := range found {
				got[string(f.Key)] = string(f.Value)
			}
			if cursor == 0 {
				break
			}
		}
		require.Equal(t, want, got)
		require.EqualValues(t, 250, count(t, e))
		require.EqualValues(t, 1, count(t, other))
		flushed := make(chan error, 1)
		e.Flush(func(err error) { flushed <- err })
		require.NoError(t, <-flushed)
		require.Zero(t, count(t, e))
		require.EqualValues(t, 1, count(t, other))
	})
}

func count(t *testing.T, e *engine.Engine) (n int64) {
	t.Helper()
	done := make(chan error, 1)
	e.Count(func(got int64, err error) { n = got; done <- err })
	require.NoError(t, <-done)
	return n
}

func TestEngineWorksWithPasswordUserAndTLS(t *testing.T) {
	storetest.Each(t, func(t *testing.T, en storetest.Engine) {
		n := en.Single(t, storetest.Options{
			Password: "secret", TLS: storetest.NewCertificates(t),
			Users: []string{"user default on >secret ~* &* +@all", "user limiter on >other ~cs:* +get +evalsha +eval +del +scan +time +info +set +getrange"},
		})
		e := ready(t, n.URL())
		applied, _, err := swap(e, write("a", nil, value(1, "")))
		require.NoError(t, err)
		require.True(t, applied)
		few := ready(t, strings.Replace(n.URL(), "://:secret@", "://limiter:other@", 1))
		applied, _, err = swap(few, write("b", nil, value(1, "")))
		require.NoError(t, err)
		require.True(t, applied, "few commands are enough")
		require.EqualValues(t, 2, count(t, few))
	})
}

func TestEngineSaysWhyItCannotConnect(t *testing.T) {
	n := storetest.Best(t).Single(t, storetest.Options{Password: "secret", TLS: storetest.NewCertificates(t)})
	for url, want := range map[string]string{
		strings.Replace(n.URL(), "secret", "5ecret", 1): "WRONGPASS",
		strings.Split(n.URL(), "?")[0]:                  "TLS",
	} {
		var log lines
		e := engineAt(t, url, logTo(&log))
		storetest.Await(t, want, func() error {
			if log.contains(want) {
				return nil
			}
			return errors.New(log.String())
		})
		require.False(t, log.contains("5ecret"))
		var why *engine.Error
		_, err := get(e, "a")
		require.ErrorAs(t, err, &why)
		require.Equal(t, engine.Starting, why.Reason)
		require.True(t, why.NotDone)
	}
	_, err := engine.Open(engine.Options{Address: &engine.Address{TLS: &engine.TLS{CA: "/no/such"}}, Timeout: 1, Elapsed: func() time.Duration { return 0 }})
	require.ErrorContains(t, err, "CA of the store")
}

func TestOperatorIsWarnedOfSettingsThatLoseLimits(t *testing.T) {
	n := storetest.Best(t).Single(t, storetest.Options{Args: []string{"--maxmemory-policy", "allkeys-lru"}})
	log := warnings(t, n.URL())
	storetest.Await(t, "the warning", func() error {
		if !log.contains("maxmemory-policy is allkeys-lru") {
			return fmt.Errorf("%s", log)
		}
		return nil
	})
}

// warnings opens the engine at url and returns its log.
func warnings(t *testing.T, url string) *lines {
	t.Helper()
	log := &lines{}
	ready(t, url, logTo(log))
	return log
}
