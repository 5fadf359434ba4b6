package remote

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
)

// TestGroupThatIsAnsweredByThePolicyIsUndone: the engine writes, but no answer arrives before the
// deadline. Charges of asks that the policy has answered with an error are given back; those that
// it has admitted remain.
func TestGroupThatIsAnsweredByThePolicyIsUndone(t *testing.T) {
	for name, c := range map[string]struct {
		keys     []string
		together bool
	}{
		"one slot":      {[]string{"{x}a", "{x}b", "{x}c"}, false},
		"several slots": {[]string{"a", "b", "c"}, false},
		"transaction":   {[]string{"{x}a", "{x}b", "{x}c"}, true},
	} {
		for _, open := range []bool{false, true} {
			cloud := newCloud(1)
			s := serve(cloud.join(network{there: time.Millisecond, back: time.Millisecond, timeout: 30 * time.Millisecond}), bounds())
			s.policy.open = open
			asks := []*decide.Ask{multi(t, 9, c.keys...)}
			if c.together {
				asks = append(asks, multi(t, 9, c.keys[1:]...))
			}
			answered := false
			s.Submit(asks, c.together, func() { answered = true })
			s.runFor(2 * time.Millisecond) // it has read the value
			s.silences = 1
			s.runFor(48 * time.Millisecond)
			require.True(t, answered, name)
			for _, a := range asks {
				require.Equal(t, !open, a.Err != nil, name)
			}
			require.NotZero(t, s.used(c.keys[2]), name)
			s.silences = 0
			s.runFor(time.Second)
			want := int64(0)
			if open {
				want = 1
			}
			require.Equal(t, want, s.used(c.keys[0]), "%s, open %v", name, open)
			if !open {
				require.Zero(t, s.used(c.keys[1]), name)
				require.Zero(t, s.used(c.keys[2]), name)
				require.NotZero(t, s.Store.count.undone.Load())
			}
			require.NotZero(t, s.Store.count.doubts.Load())
			require.Zero(t, s.Store.count.kept.Load())
			require.Zero(t, s.Store.count.unknown.Load())
			after := multi(t, 9, c.keys...)
			s.call(t, after)
			require.NoError(t, after.Err, "the keys are free again")
		}
	}
}

// TestGroupEndsWithoutTheEngine: an engine that refuses or is silent delays nothing beyond the
// deadline, and the keys are free once it is back.
func TestGroupEndsWithoutTheEngine(t *testing.T) {
	for name, fails := range map[string]func(s *server, on bool){
		"refuses": func(s *server, on bool) {
			if s.refuses = nil; on {
				s.refuses = errOverload
			}
		},
		"drops": func(s *server, on bool) {
			if s.drops = 0; on {
				s.drops = 1
			}
		},
		"moves": func(s *server, on bool) { s.moving[slotOf([]byte("x"))] = on },
	} {
		for _, keys := range [][]string{{"{x}a", "{x}b"}, {"a", "b"}} {
			s := serve(newCloud(1).join(network{there: time.Millisecond}), bounds())
			fails(s, true)
			var first, second time.Duration
			one, two := multi(t, 9, keys...), multi(t, 9, keys...)
			s.Submit([]*decide.Ask{one}, false, func() { first = s.Elapsed() })
			s.Submit([]*decide.Ask{two}, false, func() { second = s.Elapsed() })
			s.runFor(time.Second)
			require.LessOrEqual(t, max(first, second), 50*time.Millisecond, name)
			require.NotZero(t, min(first, second), name)
			fails(s, false)
			s.runFor(time.Second)
			used := s.used(keys[0])
			require.Equal(t, used, s.used(keys[1]))
			last := multi(t, 9, keys...)
			s.call(t, last)
			require.NoError(t, last.Err, name)
			require.False(t, last.Refused)
			require.Equal(t, used+1, s.used(keys[0]), name)
		}
	}
}

func TestGroupGoesOnWhenASlotHasMoved(t *testing.T) {
	s := serve(newCloud(1).join(network{there: time.Millisecond}), bounds())
	s.moving[slotOf([]byte("x"))] = true
	s.after(20*time.Millisecond, func() { s.moving[slotOf([]byte("x"))] = false })
	a := multi(t, 9, "{x}a", "{x}b")
	s.call(t, a)
	require.NoError(t, a.Err)
	require.EqualValues(t, 1, s.used("{x}a"))
}

// TestMultiAcrossSlotsIsChargedOnceIfItsServerDies: one server dies after every single event of a
// call over three slots, while another server charges the same keys.
func TestMultiAcrossSlotsIsChargedOnceIfItsServerDies(t *testing.T) {
	keys := []string{"a", "b", "c"}
	deaths, left := 0, 0
	for seed := range seeds(40) {
		for point := 0; ; point++ {
			c := newCloud(seed)
			all := &crowd{admitted: map[string]int64{}}
			for range 2 {
				n := network{there: 200 * time.Microsecond, back: 200 * time.Microsecond, jitter: 300 * time.Microsecond, timeout: 5 * time.Millisecond}
				if seed%2 == 1 {
					n.cuts, n.silences = 0.1, 0.1
				}
				all.servers = append(all.servers, serve(c.join(n), bounds()))
			}
			dying, other := all.servers[0], all.servers[1]
			all.call(other, 5*time.Millisecond, func() *decide.Ask { return multi(t, 4, keys[seed%3], keys[(seed+1)%3]) })
			all.call(dying, 0, func() *decide.Ask { return multi(t, 4, keys...) })
			for range point {
				c.step()
			}
			ended := c.world.now > 15*time.Millisecond
			dying.kill()
			c.runFor(time.Second)
			lost := all.sum(func(n *counters) int64 { return n.unknown.Load() + n.kept.Load() })
			for _, key := range keys {
				used := other.used(key)
				require.GreaterOrEqual(t, used, all.admitted[key], "seed %d, event %d, %s", seed, point, key)
				require.LessOrEqual(t, used-all.admitted[key], 1+lost, "seed %d, event %d, %s", seed, point, key)
				require.LessOrEqual(t, all.admitted[key], int64(4))
				if used > all.admitted[key] {
					left++
				}
			}
			deaths++
			if ended {
				break
			}
		}
	}
	t.Logf("%d deaths left %d charges", deaths, left)
	require.Greater(t, deaths, 500)
	require.NotZero(t, left)
}

// TestMultiAcrossSlotsChargesOneCallForEachDeath: servers die repeatedly under load, and others
// replace them.
func TestMultiAcrossSlotsChargesOneCallForEachDeath(t *testing.T) {
	keys := []string{"a", "b", "c"}
	for seed := range seeds(5) {
		c := newCloud(seed)
		all := &crowd{admitted: map[string]int64{}}
		deaths := int64(0)
		n := network{there: 200 * time.Microsecond, back: 200 * time.Microsecond, jitter: 300 * time.Microsecond, timeout: 5 * time.Millisecond}
		var begin func()
		begin = func() {
			s := serve(c.join(n), bounds())
			all.servers = append(all.servers, s)
			for k := range 8 {
				all.call(s, 2*time.Second, func() *decide.Ask { return multi(t, 1000, keys[k%3], keys[(k+1)%3]) })
			}
			if c.world.now < 1900*time.Millisecond {
				c.after(c.upTo(100*time.Millisecond), func() {
					s.kill()
					deaths++
					begin()
				})
			}
		}
		for range 4 {
			begin()
		}
		c.runFor(10 * time.Second)
		lost := all.sum(func(n *counters) int64 { return n.unknown.Load() + n.kept.Load() })
		for _, key := range keys {
			used := all.servers[0].used(key)
			require.GreaterOrEqual(t, used, all.admitted[key], "seed %d: %s", seed, key)
			require.LessOrEqual(t, used-all.admitted[key], deaths+lost, "seed %d: %s", seed, key)
		}
		t.Log(deaths, "deaths", all.admitted, all.servers[0].used("a"), all.servers[0].used("b"), all.servers[0].used("c"), lost)
	}
}

// TestGroupsOfManyGoroutines is for the race detector: real time, an engine that answers at
// once on goroutines of its own, and two servers.
func TestGroupsOfManyGoroutines(t *testing.T) {
	i := newInstant()
	l := bounds()
	l.timeout = 10 * time.Second
	stores := []*Store{newStore(i, i, &silent{}, l), newStore(i, i, &silent{}, l)}
	const callers, calls = 8, 60
	keys := []string{"a", "b", "{x}a", "{x}b"}
	type result struct{ admitted map[string]int64 }
	results := make(chan result)
	for n := range callers {
		flights := make([][]*decide.Ask, calls)
		for k := range flights {
			flights[k] = []*decide.Ask{multi(t, 100, keys[(n+k)%4], keys[(n+k+1)%4])}
			if k%3 == 0 {
				flights[k] = append(flights[k], multi(t, 100, "{x}a", "{x}b"))
			}
		}
		go func() {
			s, admitted := stores[n%2], map[string]int64{}
			for k, asks := range flights {
				answered := make(chan struct{})
				s.Submit(asks, k%2 == 0, func() { close(answered) })
				<-answered
				for _, a := range asks {
					if a.Err == nil && !a.Refused {
						for _, c := range a.Clauses {
							admitted[string(c.Key)]++
						}
					}
				}
			}
			results <- result{admitted}
		}()
	}
	admitted := map[string]int64{}
	for range callers {
		for key, n := range (<-results).admitted {
			admitted[key] += n
		}
	}
	for _, key := range keys {
		// An undoing may still be in progress and hold the key.
		done := make(chan struct{})
		stores[0].Submit([]*decide.Ask{admin(key, decide.Exists)}, false, func() { close(done) })
		<-done
		done = make(chan struct{})
		stores[1].Submit([]*decide.Ask{admin(key, decide.Exists)}, false, func() { close(done) })
		<-done
		require.Equal(t, admitted[key], charged(i.get([]byte("cs:"+key)), i.Now(), time.Hour), key)
		require.LessOrEqual(t, admitted[key], int64(100))
	}
}

// TestATransactionThatDeletesIsNotTakenForDone: the write of a transaction never arrives. Meanwhile
// another client deletes the first key, which the transaction was to delete, and charges the
// second. The absence of the first key does not prove that the write was done; the second key
// proves that it was not.
func TestATransactionThatDeletesIsNotTakenForDone(t *testing.T) {
	for _, keys := range [][2]string{{"{x}a", "{x}d"}, {"{x}d", "{x}a"}} {
		c := newCloud(1)
		well := network{there: time.Millisecond, back: time.Millisecond}
		s, other := serve(c.join(well), bounds()), serve(c.join(well), bounds())
		other.call(t, take(t, "{x}d", 9, 1))
		c.after(1500*time.Microsecond, func() { s.drops = 1 }) // after the reads
		c.after(5*time.Millisecond, func() {
			s.drops = 0
			c.put([]byte("cs:{x}d"), nil, 0)
			a := take(t, "{x}a", 9, 1)
			other.Submit([]*decide.Ask{a}, false, func() { require.True(t, a.Decision.Allowed()) })
		})
		var asks []*decide.Ask
		for _, key := range keys {
			if key == "{x}d" {
				asks = append(asks, admin(key, decide.Delete))
				continue
			}
			asks = append(asks, take(t, key, 9, 1))
		}
		s.transact(t, asks...)
		for _, a := range asks {
			require.NoError(t, a.Err)
		}
		require.Positive(t, s.count.doubts.Load())
		require.EqualValues(t, 2, s.used("{x}a"), "both were admitted")
	}
}
