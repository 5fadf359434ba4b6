package chaos_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/internal/clocktest"
	"github.com/cellserver/cellserver/internal/storetest"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/remote"
)

// answer is what is compared of the answers to an ask.
type answer struct {
	decision any
	result   any
	refused  bool
	err      error
}

func answerOf(a *decide.Ask) answer {
	if a.Err != nil {
		return answer{err: a.Err}
	}
	if a.Family == decide.Admin {
		return answer{result: a.Result}
	}
	if a.Family == decide.Several {
		return answer{decision: slices.Clone(a.Details), refused: a.Refused}
	}
	return answer{decision: a.Decision}
}

// TestStoreAgreesWithTheKeyspace plays random calls of all families on a cluster, and again
// in memory at the instants at which they were decided there: every answer is the same.
func TestStoreAgreesWithTheKeyspace(t *testing.T) {
	calls := scaled(20_000, 1_000_000)
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		s := open(t, remote.Options{URL: e.Cluster(t, 3, 0, storetest.Options{}).URL(), Timeout: storetest.Patience})
		clock := clocktest.New(s.Now())
		ks := keyspace.New(keyspace.Options{Clock: clock})
		t.Cleanup(ks.Close)
		local := ks.NewHandle()
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		var refused, failed, several int
		for done := 0; done < calls; {
			asks := make([]*decide.Ask, 1+r.IntN(32))
			again := make([]*decide.Ask, len(asks))
			for i := range asks {
				asks[i] = drawn(r)
				twin := *asks[i]
				again[i] = &twin
				again[i].Own(nil)
				asks[i].Own(nil)
			}
			submitAll(s, asks...)
			order := make([]int, len(asks))
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(asks[i].Now, asks[j].Now) })
			for _, i := range order {
				clock.Set(asks[i].Now)
				local.Refresh()
				local.Decide(again[i])
				require.Equal(t, answerOf(again[i]), answerOf(asks[i]), "seed %d, call %d: %+v", seed, done+i, asks[i])
				switch a := asks[i]; {
				case a.Err != nil:
					failed++
				case a.Family == decide.Several && !a.Refused:
					several++
				case a.Decision.Refused > 0:
					refused++
				}
			}
			done += len(asks)
		}
		t.Logf("%d calls (%d refused, %d of another type, %d of several limits admitted): 0 differences", calls, refused, failed, several)
		require.Greater(t, refused, calls/20)
		require.Greater(t, several, calls/200)
		require.Less(t, failed, calls/2)
	})
}
