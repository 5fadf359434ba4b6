package records_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/remotedouble"
	"github.com/cellserver/cellserver/policy/registry"
	"github.com/cellserver/cellserver/remote/records"
)

// world has an engine and servers that change records at random.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	m       *remotedouble.Records
	late    []func()
	servers []*server
	before  []*remotedouble.Records // earlier states of the engine
	fails   bool                    // there are failovers
	lost    bool                    // there was one

	limits [4]int
	// accepted has the values of changes that were acknowledged, refused those that were not done, and
	// doubted those in doubt.
	accepted, refused, doubted []string
	added, perhaps             int // changes that have added 1 to the number n, certainly and perhaps
	values                     int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), m: remotedouble.NewRecords()}
	w.fails = w.rng.IntN(2) == 0
	w.limits = [4]int{2 + w.rng.IntN(12), 60 + w.rng.IntN(200), 1 + w.rng.IntN(20), 1 + w.rng.IntN(5)}
	faults := w.rng.IntN(40)
	for range 2 + w.rng.IntN(2) {
		w.servers = append(w.servers, w.start(faults))
	}
	return w
}

// start returns a new server.
func (w *world) start(faults int) *server {
	s := newServer(&w.m, &w.late, w.rng)
	s.Small(w.limits[0], w.limits[1], w.limits[2], w.limits[3])
	s.faults = faults
	s.link.before = func() { // the world goes on between the requests of a server
		if faults == 0 || s.busy {
			return
		}
		s.busy = true
		switch w.rng.IntN(16) {
		case 0:
			w.happen()
		case 1:
			if other := w.servers[w.rng.IntN(len(w.servers))]; !other.busy {
				other.busy = true
				w.change(other)
				other.busy = false
			}
		}
		s.busy = false
	}
	return s
}

// happen does what the servers do not do: a late request is done, the engine loses changes, time
// passes.
func (w *world) happen() {
	switch w.rng.IntN(4) {
	case 0:
		w.doLate()
	case 1:
		if w.fails && len(w.before) > 0 {
			i := w.rng.IntN(len(w.before))
			now := w.m.Now
			w.m, w.lost = w.before[i].Clone(), true
			w.m.Now = now
			w.before = w.before[:i+1]
		}
	default:
		w.m.Now += w.rng.Int64N(2_000_000_000)
	}
	if w.fails {
		if w.before = append(w.before, w.m.Clone()); len(w.before) > 8 {
			w.before = w.before[1:]
		}
	}
}

// doLate lets a delayed request arrive.
func (w *world) doLate() {
	if len(w.late) > 0 {
		i := w.rng.IntN(len(w.late))
		f := w.late[i]
		w.late = slices.Delete(w.late, i, i+1)
		f()
	}
}

func (w *world) key() string { return fmt.Sprintf("main/p%d", w.rng.IntN(12)) }

// change makes one change with a server, and records what the server says of it.
func (w *world) change(s *server) {
	w.values++
	value := fmt.Sprintf("value %d", w.values)
	if w.rng.IntN(8) > 0 {
		_, _ = s.Refresh()
	}
	words := []string{w.key(), value}
	adds := w.rng.IntN(2) == 0
	if adds {
		n, _ := strconv.Atoi(s.records["n"])
		words = append(words, "n", strconv.Itoa(n+1))
	}
	for range w.rng.IntN(3) {
		words = append(words, w.key()+"x", []string{"", "other " + value}[w.rng.IntN(2)])
	}
	if w.rng.IntN(4) == 0 { // another goroutine of the server follows
		_, _ = s.Follow(w.t.Context())
	}
	switch err := s.set(words...); {
	case err == nil:
		w.accepted = append(w.accepted, value)
		if adds {
			w.added++
		}
	case errors.Is(err, registry.ErrStale):
		w.refused = append(w.refused, value)
	default:
		var unavailable decide.Unavailable
		require.ErrorAs(w.t, err, &unavailable)
		w.doubted = append(w.doubted, value)
		if adds {
			w.perhaps++
		}
	}
}

func (w *world) step() {
	i := w.rng.IntN(len(w.servers))
	s := w.servers[i]
	switch w.rng.IntN(12) {
	case 0, 1, 2, 3, 4:
		w.change(s)
	case 5, 6, 7:
		_, _ = s.Follow(w.t.Context())
	case 8:
		_, _ = s.Refresh()
		key := w.key()
		value := s.records[key]
		if w.rng.IntN(2) == 0 { // another goroutine of the server follows
			_, _ = s.Follow(w.t.Context())
		}
		if s.Delete([]byte(key)) == nil {
			require.Equal(w.t, value, s.records[key], "no new value is deleted")
			delete(s.records, key)
		}
	case 9:
		if w.rng.IntN(5) == 0 {
			w.servers[i] = w.start(s.faults)
		}
	case 10, 11:
		w.happen()
	}
}

// heal lets all requests be answered, and all servers follow.
func (w *world) heal() {
	for len(w.late) > 0 {
		w.doLate()
	}
	for _, s := range w.servers {
		s.faults, s.link.before = 0, nil
	}
}

// check compares the servers and the engine, and the changes with what the servers said of them.
func (w *world) check() {
	want := w.m.All()
	version, err := records.ParseVersion(w.m.Strings[head])
	require.NoError(w.t, err)
	for _, s := range w.servers {
		_, err := s.Follow(w.t.Context())
		require.NoError(w.t, err)
		require.Equal(w.t, want, s.records)
		require.Equal(w.t, version, s.Version())
		require.LessOrEqual(w.t, s.Age(s.LastFollowed()+5), s.Age(s.LastFollowed()+6))
		if !w.lost {
			require.Zero(w.t, s.Lost())
		}
	}
	times := map[string]int{}
	for _, values := range w.m.Done {
		for _, v := range values {
			times[v]++
		}
	}
	for _, v := range slices.Concat(w.accepted, w.doubted, w.refused) {
		require.LessOrEqual(w.t, times[v], 1, v)
	}
	if w.lost {
		return
	}
	for _, v := range w.accepted {
		require.Equal(w.t, 1, times[v], v)
	}
	for _, v := range w.refused {
		require.Zero(w.t, times[v], v)
	}
	n, _ := strconv.Atoi(want["n"])
	require.GreaterOrEqual(w.t, n, w.added, "no change was overwritten")
	require.LessOrEqual(w.t, n, w.added+w.perhaps)
}

// TestWorlds lets servers change records while requests fail, replies get lost, and the engine loses
// changes. Afterwards all servers have the records of the engine, and each change was made as the
// server has said.
func TestWorlds(t *testing.T) {
	worlds := uint64(3000)
	if testing.Short() {
		worlds = 300
	}
	accepted, lost := 0, 0
	for seed := range worlds {
		w := newWorld(t, seed)
		for range 60 {
			w.step()
		}
		w.heal()
		w.check()
		accepted += len(w.accepted)
		for _, s := range w.servers {
			lost += int(s.Lost())
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	require.Greater(t, accepted, int(worlds), "the worlds change something")
	require.Positive(t, lost, "the worlds lose something")
}
