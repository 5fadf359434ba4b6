//go:build real

package engine_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/remote/engine"
)

// load swaps many keys in chains until stop is called, which returns the number of swaps. An error
// that sound does not accept fails the test.
func load(t *testing.T, e *engine.Engine, sound func(*engine.Error) bool) (stop func() int64) {
	t.Helper()
	const keys = 200
	var ended atomic.Bool
	var swaps atomic.Int64
	var all sync.WaitGroup
	for k := range keys {
		all.Add(1)
		key, n := fmt.Sprint("key", k), 0
		var next func()
		next = func() {
			if ended.Load() {
				all.Done()
				return
			}
			var old []byte
			if n > 0 {
				old = value(n, "")
			}
			e.Swap(write(key, old, value(n+1, "")), func(applied bool, now []byte, err error) {
				why, _ := err.(*engine.Error) //nolint:errorlint // the error is not wrapped
				switch {
				case err == nil && applied:
					n++
					swaps.Add(1)
				case err != nil && sound != nil && sound(why): // try again
				default:
					t.Errorf("swap %d of %s: %v, %q, %v", n+1, key, applied, now, err)
					ended.Store(true)
				}
				next()
			})
		}
		next()
	}
	return func() int64 {
		ended.Store(true)
		all.Wait()
		return swaps.Load()
	}
}

// TestSlotsThatMoveLoseNoSwap moves slots to another master and back, under load, and makes all
// nodes forget their scripts.
func TestSlotsThatMoveLoseNoSwap(t *testing.T) {
	if testing.Short() {
		t.Skip("moving slots takes seconds")
	}
	storetest.Each(t, func(t *testing.T, en storetest.Engine) {
		// No node fails here, so none must be considered failed if the machine stalls.
		c := en.Cluster(t, 3, 0, storetest.Options{NodeTimeout: time.Minute})
		e := ready(t, c.URL(), func(o *engine.Options) { o.Timeout = 20 * time.Second })
		stop := load(t, e, nil)
		for _, way := range [][2]int{{0, 1}, {1, 0}} {
			c.MoveSlots(c.Masters[way[0]], c.Masters[way[1]], 0, 700)
			require.NoError(t, c.FlushScripts())
		}
		require.Positive(t, stop())
		redirected := int64(0)
		for _, n := range e.Info().Nodes {
			redirected += n.Redirected
		}
		require.Positive(t, redirected)
	})
}

// TestMasterThatDiesIsReplaced kills a master under load; requests then go to its replica.
func TestMasterThatDiesIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("elections take seconds")
	}
	en := storetest.Best(t)
	c := en.Cluster(t, 3, 3, storetest.Options{NodeTimeout: time.Second})
	e := ready(t, c.URL())
	c.Masters[0].Kill()
	after := c.AwaitFailover(c.Masters[0])
	since := time.Now()
	storetest.Await(t, "the replica is asked", func() error {
		for i := range 100 { // some of them are in the master's slots
			if _, _, err := swap(e, write(fmt.Sprint("k", i), value(9, ""), value(1, ""))); err != nil {
				return err
			}
		}
		return nil
	})
	t.Logf("back %v after the election", time.Since(since))
	found := false
	for _, n := range e.Info().Nodes {
		found = found || n.Addr == after.Addr
	}
	require.True(t, found)
}

// TestSentinelsNameTheMaster uses the master that Sentinels name, and the next one.
func TestSentinelsNameTheMaster(t *testing.T) {
	if testing.Short() {
		t.Skip("elections take seconds")
	}
	en := storetest.Best(t)
	s := en.Sentinels(t, 1, storetest.Options{Password: "secret", NodeTimeout: time.Second})
	hosts := strings.Join(s.Addrs(), ",")
	with := "?sentinel-password=" + url.QueryEscape("secret")
	e := ready(t, "redis-sentinel://:secret@"+hosts+"/"+storetest.MasterName+with)
	applied, _, err := swap(e, write("a", nil, value(1, "")))
	require.NoError(t, err)
	require.True(t, applied)
	require.Equal(t, "sentinel", e.Info().Kind)
	require.Equal(t, s.Master.Addr, e.Info().Nodes[0].Addr)
	s.Master.Kill()
	next := s.AwaitFailover(s.Master)
	since := time.Now()
	storetest.Await(t, "the next master is asked", func() error {
		_, _, err := swap(e, write("b", nil, value(1, "")))
		return err
	})
	t.Logf("back %v after the election", time.Since(since))
	require.Equal(t, next.Addr, e.Info().Nodes[0].Addr)

	log := &lines{}
	engineAt(t, "redis-sentinel://:secret@"+hosts+"/nobody"+with, logTo(log))
	storetest.Await(t, "the fault", func() error {
		if !log.contains(`knows no master`) {
			return fmt.Errorf("%s", log)
		}
		return nil
	})
}

// TestClusterWithTLS uses a user with the commands that docs/scale-out.md names.
func TestClusterWithTLS(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster takes seconds to meet")
	}
	storetest.Each(t, func(t *testing.T, en storetest.Engine) {
		c := en.Cluster(t, 2, 0, storetest.Options{
			Password: "secret", TLS: storetest.NewCertificates(t),
			Users: []string{
				"user default on >secret ~* &* +@all",
				"user limiter on >other ~cs:* resetchannels -@all +get +getrange +set +del +eval +evalsha +scan +time +info +cluster|slots +asking",
			},
		})
		e := ready(t, strings.Replace(c.URL(), ":secret@", "limiter:other@", 1), func(o *engine.Options) { o.Timeout = 20 * time.Second })
		stop := load(t, e, nil)
		c.MoveSlots(c.Masters[0], c.Masters[1], 0, 100)
		require.NoError(t, c.FlushScripts())
		require.Positive(t, stop())
		require.Positive(t, count(t, e))
		require.Len(t, e.Info().Nodes, 2)
	})
}
