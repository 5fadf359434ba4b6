package chaos_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/remote"
)

// outage is a way in which a store does not decide.
type outage struct {
	name, reason string
	begin, end   func()
}

// stubborn is a node behind a front, and all its outages.
func stubborn(t *testing.T, e storetest.Engine) (*storetest.Node, *front, []outage) {
	t.Helper()
	node := e.Single(t, storetest.Options{Args: []string{"--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no"}})
	other := e.Single(t, storetest.Options{})
	f := newFront(t, node.Addr)
	set := func(name string, value any) func() {
		return func() { node.Do("CONFIG", "SET", name, value) }
	}
	host, port, _ := strings.Cut(other.Addr, ":")
	return node, f, []outage{
		{"black hole", "timeout", func() { f.add(blackHole) }, f.heal},
		{"refused", "", f.refuse, f.accept},
		{"OOM", "OOM", set("maxmemory", 1), set("maxmemory", 0)},
		{"NOREPLICAS", "NOREPLICAS", set("min-replicas-to-write", 1), set("min-replicas-to-write", 0)},
		{"READONLY", "READONLY", func() {
			node.Do("REPLICAOF", host, port)
			node.AwaitLink()
		}, func() { node.Do("REPLICAOF", "NO", "ONE") }},
		{"LOADING", "LOADING", func() {
			for i := range 2000 {
				node.Do("SET", fmt.Sprint("other-", i), strings.Repeat("x", 2000))
			}
			node.Do("SAVE")
			node.Kill()
			node.Start("--key-load-delay", "5000") // 10 s for all, in which it replies every 5 ms
			storetest.Await(t, "the node loads", func() error {
				err := node.Client.Ping(t.Context()).Err()
				if err != nil && strings.HasPrefix(err.Error(), "LOADING") {
					return nil
				}
				return errors.Join(errors.New("it does not"), err)
			})
		}, func() {
			node.Kill()
			node.Start("--key-load-delay", "0")
		}},
	}
}

// TestPoliciesAnswerWhereTheStoreDoesNot has a store that is silent, away, loading, full, read
// only and without its replicas: each policy answers as it says and in no time, no goroutines
// pile up, and soon after its end the store decides again.
func TestPoliciesAnswerWhereTheStoreDoesNot(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		node, f, outages := stubborn(t, e)
		ks := keyspace.New(keyspace.Options{Clock: clocktest.New(1_800_000_000_000_000_000)})
		t.Cleanup(ks.Close)
		local := ks.NewHandle()
		asks := make(chan func()) // the handle is for one goroutine
		go func() {
			for f := range asks {
				f()
			}
		}()
		t.Cleanup(func() { close(asks) })
		s := open(t, remote.Options{
			URL: node.URLAt(f.addr), Servers: 2,
			FailPolicies: map[string]string{"open:": remote.Opened, "local:": remote.Local},
			Local: func(a *decide.Ask) {
				done := make(chan struct{})
				asks <- func() {
					local.Refresh()
					local.Decide(a)
					close(done)
				}
				<-done
			},
		})
		for _, o := range outages {
			t.Run(o.name, func(t *testing.T) { endure(t, s, &o) })
		}
	})
}

// tight admits four of a key in an hour.
func tight(key string) *decide.Ask {
	q, err := gcra.NewQuota(3, 1, 3600)
	if err != nil {
		panic(err) // the numbers above are a rate
	}
	return &decide.Ask{Key: []byte(key), Family: decide.Cell, Quota: q, Quantity: 1}
}

func endure(t *testing.T, s *remote.Store, o *outage) {
	t.Helper()
	before := runtime.NumGoroutine()
	// Keys of their own: what was answered to others is no matter here.
	own := strings.ReplaceAll(o.name, " ", "") + fmt.Sprint(time.Now().UnixNano())
	o.begin()
	storetest.Await(t, "the store decides no more", func() error {
		if a := submit(s, tight("first:"+own)); a.Err == nil {
			return errors.New("it does")
		}
		return nil
	})
	storetest.Await(t, "the store says why", func() error { // on a busy machine its time may be over first
		a := submit(s, tight("closed:"+own))
		var unavailable decide.Unavailable
		require.ErrorAs(t, a.Err, &unavailable)
		if !strings.Contains(a.Err.Error(), o.reason) {
			return a.Err
		}
		return nil
	})

	var admitted int
	for range 8 {
		a := submit(s, tight("open:"+own))
		require.NoError(t, a.Err)
		require.Zero(t, a.Decision.Refused)
		require.Equal(t, int64(4), a.Decision.Remaining)
		a = submit(s, tight("local:"+own))
		require.NoError(t, a.Err)
		if a.Decision.Refused == 0 {
			admitted++
		}
	}
	require.Equal(t, 2, admitted, "half of the limit is this server's")

	var took []time.Duration
	crowd := 0
	for i := range scaled(2_000, 50_000) {
		began := time.Now()
		submitAll(s, tight(fmt.Sprint("closed:", own, i)), tight(fmt.Sprint("open:", own, i)))
		took = append(took, time.Since(began))
		crowd = max(crowd, runtime.NumGoroutine())
	}
	slices.Sort(took)
	require.Less(t, crowd, before+50, "goroutines do not pile up")

	o.end()
	ended := time.Now()
	storetest.Await(t, "the store decides again", func() error { return submit(s, tight("last:"+own)).Err })
	back := time.Since(ended)
	t.Logf("%s: p50 %s, p99 %s, goroutines %d at first and %d at most, back after %s", o.name,
		took[len(took)/2], took[len(took)*99/100], before, crowd, back.Round(time.Millisecond))
	require.Less(t, back, 10*time.Second)
}
