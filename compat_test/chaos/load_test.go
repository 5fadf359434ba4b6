package chaos_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote"
)

// load is callers of stores that all ask about the same keys.
type load struct {
	t     testing.TB
	began time.Time
	keys  []string // each begins with the name of its family
	stop  chan struct{}
	work  sync.WaitGroup
	far   atomic.Int64 // calls admitted so far

	mu    sync.Mutex
	calls []call
	told  map[string]*tally
}

const (
	// callers is how many a store has, each with one call at a time.
	callers = 8
	// mostUnits is what a call asks for at most.
	mostUnits = 3
)

// tally is what callers were told about a key, in units.
type tally struct{ admitted, refused, failed int64 }

// call is one of the history, which is kept if the test fails.
type call struct {
	Store, Caller int
	Key           string
	Quantity      int64
	// Began and Ended are measured from the start of the load.
	Began, Ended time.Duration
	Admitted     bool
	Error        string `json:",omitempty"`
}

// newLoad has so many keys of each family.
func newLoad(t testing.TB, each int) *load {
	t.Helper()
	l := &load{t: t, began: time.Now(), stop: make(chan struct{}), told: map[string]*tally{}}
	for _, family := range slices.Sorted(maps.Keys(lasting)) {
		for i := range each {
			key := fmt.Sprintf("%s-%d", family, i)
			l.keys = append(l.keys, key)
			l.told[key] = &tally{}
		}
	}
	t.Cleanup(l.keep)
	return l
}

// call has a store called until end.
func (l *load) call(number int, s *remote.Store) {
	for caller := range callers {
		l.work.Go(func() {
			var mine []call
			for {
				select {
				case <-l.stop:
					l.count(mine)
					return
				default:
					mine = append(mine, l.one(number, caller, s))
				}
			}
		})
	}
}

// awaitBegin returns when some calls were admitted: what is done then meets a load.
func (l *load) awaitBegin() {
	l.t.Helper()
	storetest.Await(l.t, "the load begins", func() error {
		if l.far.Load() < 100 {
			return errors.New("it does not")
		}
		return nil
	})
}

func (l *load) one(number, caller int, s *remote.Store) call {
	c := call{Store: number, Caller: caller, Key: l.keys[rand.IntN(len(l.keys))], Quantity: 1 + rand.Int64N(mostUnits), Began: time.Since(l.began)}
	a := submit(s, familyOf(c.Key)(c.Key, c.Quantity))
	c.Ended, c.Admitted = time.Since(l.began), a.Err == nil && a.Decision.Refused == 0
	if a.Err != nil {
		c.Error = a.Err.Error()
	}
	if c.Admitted {
		l.far.Add(1)
	}
	return c
}

func (l *load) count(mine []call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, mine...)
	for _, c := range mine {
		switch t := l.told[c.Key]; {
		case c.Error != "":
			t.failed += c.Quantity
		case c.Admitted:
			t.admitted += c.Quantity
		default:
			t.refused += c.Quantity
		}
	}
}

// end stops all callers and waits for them.
func (l *load) end() {
	close(l.stop)
	l.work.Wait()
}

// total adds up what callers were told.
func (l *load) total() (all tally) {
	for _, t := range l.told {
		all.admitted += t.admitted
		all.refused += t.refused
		all.failed += t.failed
	}
	return all
}

// admittedIn is how many units of a key were admitted to calls under way in a span of the
// load.
func (l *load) admittedIn(key string, from, to time.Duration) (n int64) {
	for _, c := range l.calls {
		if c.Key == key && c.Admitted && c.Ended >= from && c.Began <= to {
			n += c.Quantity
		}
	}
	return n
}

// slowest is how long the slowest 1 % of the calls took at least, of those that began in a
// span of the load.
func (l *load) slowest(from, to time.Duration) time.Duration {
	var took []time.Duration
	for _, c := range l.calls {
		if c.Began >= from && c.Began < to {
			took = append(took, c.Ended-c.Began)
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// charges reads what each key was charged, by way of a client of all nodes.
func (l *load) charges(client redis.UniversalClient, now limit.Instant) map[string]int64 {
	l.t.Helper()
	all := map[string]int64{}
	for _, key := range l.keys {
		raw, err := client.Get(l.t.Context(), prefix+key).Bytes()
		if err != redis.Nil { //nolint:errorlint // it is never wrapped
			require.NoError(l.t, err)
		}
		all[key] = charged(l.t, raw, now)
	}
	return all
}

// keep writes the history of a test that failed to a file that stays.
func (l *load) keep() {
	if !l.t.Failed() {
		return
	}
	dir, err := os.MkdirTemp("", "cellserver-chaos-")
	if err != nil {
		l.t.Logf("the history is not kept: %v", err)
		return
	}
	file := filepath.Join(dir, "history.json")
	text, err := json.Marshal(l.calls)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	l.t.Logf("the history of %d calls is in %s (%v)", len(l.calls), file, err)
}

// figure is a figure of a store by its name.
func figure(t testing.TB, s *remote.Store, name string) int64 {
	t.Helper()
	for _, f := range s.Info().Figures {
		if f.Name == name {
			return int64(f.Value)
		}
	}
	require.Fail(t, "there is no such figure", name)
	return 0
}

// figures adds up a figure of several stores.
func figures(t testing.TB, stores []*remote.Store, name string) (sum int64) {
	t.Helper()
	for _, s := range stores {
		sum += figure(t, s, name)
	}
	return sum
}

// every calls f again and again until the test says stop, and returns when it has ended.
func every(d time.Duration, f func()) (stop func()) {
	var ending atomic.Bool
	var work sync.WaitGroup
	work.Go(func() {
		for !ending.Load() {
			f()
			time.Sleep(d) // the pace of what harms, which decides nothing
		}
	})
	return func() {
		ending.Store(true)
		work.Wait()
	}
}
