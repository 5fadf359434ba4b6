package remote

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// toll counts the answers to callers.
type toll struct{ admitted, refused, failed int64 }

// callers has n callers of a server make one call after another until the instant: make returns a
// call, and think the pause of a caller between two calls.
func (s *server) callers(n int, think time.Duration, until time.Duration, make func() *decide.Ask) *toll {
	told := &toll{}
	for range n {
		var ask func()
		ask = func() {
			if s.Elapsed() >= until {
				return
			}
			a := make()
			s.Submit([]*decide.Ask{a}, false, func() {
				switch {
				case a.Err != nil:
					told.failed++
				case a.Decision.Allowed():
					told.admitted++
				default:
					told.refused++
				}
				s.after(s.upTo(think), ask)
			})
		}
		s.after(s.upTo(think+1), ask)
	}
	return told
}

// lossy loses requests and replies of all kinds.
func lossy(p float64) network {
	return network{
		there: 200 * time.Microsecond, back: 200 * time.Microsecond, jitter: 100 * time.Microsecond,
		drops: p, cuts: p, silences: p, repeats: p, late: 80 * time.Millisecond, timeout: 20 * time.Millisecond,
	}
}

// asks returns calls that each take one unit of a key whose units do not come back during a test.
func asks(t testing.TB) map[string]func(key string) *decide.Ask {
	return map[string]func(key string) *decide.Ask{
		"cell": func(key string) *decide.Ask { return take(t, key, 1<<40, 1) },
		"window": func(key string) *decide.Ask {
			return &decide.Ask{Family: decide.Window, Key: []byte(key), Window: slidingwindow.Call{
				Mode: slidingwindow.Fixed, Limit: 1 << 40, Window: 24 * 365 * time.Hour, Quantity: 1,
			}}
		},
		"bucket": func(key string) *decide.Ask {
			return &decide.Ask{Family: decide.Bucket, Key: []byte(key), Bucket: tokenbucket.Call{
				Mode: tokenbucket.Greedy, Capacity: 1 << 20, Init: 1 << 20, Count: 1, Period: time.Hour, Interval: time.Hour, Quantity: 1,
			}}
		},
	}
}

// TestWhatIsAdmittedIsCharged: with one to nine servers on an engine that loses and repeats
// requests and replies, each admitted call is charged once, and no other call is, except for writes
// of unknown outcome.
func TestWhatIsAdmittedIsCharged(t *testing.T) {
	lasts := time.Duration(effort.Steps(1, 4)) * time.Second
	for family, ask := range asks(t) {
		for _, writers := range []int{1, 2, 5, 8, 9} {
			t.Run(fmt.Sprint(family, " ", writers), func(t *testing.T) {
				t.Parallel()
				c := newCloud(uint64(writers))
				var told []*toll
				var servers []*server
				for range writers {
					s := serve(c.join(lossy(0.03)), bounds())
					servers = append(servers, s)
					told = append(told, s.callers(6, 2*time.Millisecond, lasts, func() *decide.Ask { return ask("k") }))
				}
				c.runUntil(lasts + time.Second)
				// The next exchange determines the outcome of doubtful writes.
				for _, s := range servers {
					s.network = network{there: time.Millisecond, timeout: 20 * time.Millisecond}
					s.call(t, admin("k", decide.Exists))
					s.runFor(time.Second)
				}
				var admitted, failed, unknown, doubts, undone int64
				for i, s := range servers {
					admitted += told[i].admitted
					failed += told[i].failed
					unknown += s.count.unknown.Load() + s.count.kept.Load()
					doubts += s.count.doubts.Load()
					undone += s.count.undone.Load()
					require.Empty(t, s.queued(), "nothing is left over")
				}
				t.Logf("%d admitted, %d failed, %d in doubt, %d undone, %d unknown, %d sent twice", admitted, failed, doubts, undone, unknown, c.ops.twice)
				is := charged(c.look([]byte("cs:k")), c.civil(), time.Hour)
				require.GreaterOrEqual(t, is, admitted)
				require.LessOrEqual(t, is, admitted+unknown)
				if writers <= 8 {
					require.Zero(t, unknown, "the latest writes of all are there")
					require.Equal(t, admitted, is)
				}
				require.Positive(t, doubts)
			})
		}
	}
}

// queued returns the names of the keys with waiting asks.
func (s *server) queued() (names []string) {
	for i := range s.shards {
		for name, k := range s.shards[i].keys {
			if k.busy || k.queue.first != nil {
				names = append(names, name)
			}
		}
	}
	return names
}
