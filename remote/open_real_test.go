//go:build real

package remote_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/remote"
)

// openStores opens n stores, and closes them at the end of the test, when all goroutines must have
// ended.
func openStores(t *testing.T, o remote.Options, n int) []*remote.Store {
	t.Helper()
	before := goleak.IgnoreCurrent()
	all := make([]*remote.Store, n)
	for i := range all {
		var err error
		all[i], err = remote.Open(o)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, s := range all {
			s.Close()
		}
		goleak.VerifyNone(t, before,
			// Goroutines of a node that was restarted end with the test.
			goleak.IgnoreAnyFunction("github.com/cellserver/cellserver/internal/storetest.launch.func1"),
			goleak.IgnoreAnyFunction("os/exec.(*Cmd).writerDescriptor.func1"))
	})
	return all
}

// submit submits and waits for the answers.
func submit(s *remote.Store, a *decide.Ask) error {
	done := make(chan struct{})
	s.Submit([]*decide.Ask{a}, false, func() { close(done) })
	<-done
	return a.Err
}

func cell(t *testing.T, key string) *decide.Ask {
	t.Helper()
	q, err := gcra.NewQuota(2, 1, 3600)
	require.NoError(t, err)
	return &decide.Ask{Key: []byte(key), Family: decide.Cell, Quota: q, Quantity: 1}
}

func figure(t *testing.T, all []remote.Figure, name string) float64 {
	t.Helper()
	for _, f := range all {
		require.NotEmpty(t, f.Help)
		if f.Name == name {
			return f.Value
		}
	}
	t.Fatalf("no figure %q", name)
	return 0
}

func TestStoresOnOneEngineHoldOneLimit(t *testing.T) {
	n := storetest.Best(t).Single(t, storetest.Options{})
	o := remote.Options{URL: n.URL(), Prefix: "cs:", Timeout: 10 * time.Second}
	both := openStores(t, o, 2)
	a, b := both[0], both[1]
	for _, s := range both {
		storetest.Await(t, "the store answers", func() error { return submit(s, cell(t, "ready?")) })
	}
	for i, s := range []*remote.Store{a, b, a, b, a} {
		ask := cell(t, "k")
		require.NoError(t, submit(s, ask))
		require.Equal(t, i < 3, ask.Decision.Allowed(), "call %d", i)
	}
	scan := &decide.Ask{Family: decide.Admin, Admin: decide.AdminCall{Op: decide.Scan, Count: 100}}
	require.NoError(t, submit(a, scan))
	require.Zero(t, scan.Result.Cursor)
	require.Len(t, scan.Result.Keys, 2)
	require.Equal(t, "string", scan.Result.Keys[0].Type, "as TYPE says of a cell")
	count := &decide.Ask{Family: decide.Admin, Admin: decide.AdminCall{Op: decide.Count}}
	require.NoError(t, submit(a, count))
	require.EqualValues(t, 2, count.Result.Number)
	require.NoError(t, submit(a, &decide.Ask{Family: decide.Admin, Admin: decide.AdminCall{Op: decide.Flush}}))
	require.NoError(t, submit(a, count))
	require.Zero(t, count.Result.Number)

	i := a.Info()
	require.Equal(t, "single", i.Kind)
	require.Empty(t, i.Fault)
	require.Len(t, i.Nodes, 1)
	require.Equal(t, n.Addr, i.Nodes[0].Addr)
	require.Equal(t, "up", i.Nodes[0].State)
	require.NotEmpty(t, i.Nodes[0].Version)
	require.Positive(t, figure(t, i.Nodes[0].Figures, "rtt_seconds"))
	require.Positive(t, figure(t, i.Nodes[0].Figures, "swaps"))
	require.Positive(t, figure(t, i.Figures, "applied"))
	require.Positive(t, figure(t, i.Figures, "clock_ready"))
}

// TestStoreStartsWithoutAnEngineAndRecovers: every policy answers while no engine listens, and the
// engine answers soon after it has started.
func TestStoreStartsWithoutAnEngineAndRecovers(t *testing.T) {
	n := storetest.Best(t).Single(t, storetest.Options{})
	n.Kill()
	s := openStores(t, remote.Options{
		URL: n.URL(), Prefix: "cs:", Timeout: time.Second, FailPolicies: map[string]string{"": remote.Closed, "open:": remote.Opened},
	}, 1)[0]
	ask := cell(t, "open:a")
	require.NoError(t, submit(s, ask))
	require.True(t, ask.Decision.Allowed())
	require.EqualError(t, submit(s, cell(t, "a")), "the store does not answer: starting")
	n.Restart()
	since := time.Now()
	storetest.Await(t, "the store answers", func() error { return submit(s, cell(t, "a")) })
	t.Logf("back after %v", time.Since(since))

	n.Kill() // again, now that the engine is known
	storetest.Await(t, "the store is found to be gone", func() error {
		if err := submit(s, cell(t, "a")); err == nil || s.Info().Nodes[0].State != "down" {
			return fmt.Errorf("%w, %s", err, s.Info().Nodes[0].State)
		}
		return nil
	})
	require.Equal(t, "refused", s.Info().Nodes[0].Reason)
	require.EqualError(t, submit(s, cell(t, "a")), "the store does not answer: refused")
	n.Restart()
	since = time.Now()
	storetest.Await(t, "the store answers", func() error { return submit(s, cell(t, "a")) })
	t.Logf("back after %v", time.Since(since))
}

func TestStoreOfAnAddressWhereNobodyListens(t *testing.T) {
	s := openStores(t, remote.Options{URL: "valkey://127.0.0.1:" + freeport.Choose()}, 1)[0]
	storetest.Await(t, "the fault is known", func() error {
		if s.Info().Fault == "" {
			return errors.New("it is not")
		}
		return nil
	})
	require.Equal(t, "unknown", s.Info().Kind)
	require.Error(t, submit(s, &decide.Ask{Family: decide.Admin, Admin: decide.AdminCall{Op: decide.Count}}))
}
