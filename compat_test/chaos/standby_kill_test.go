package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/storetest"
)

// standbyDown is how long a primary is away before sentinels call it down. A busy machine must not
// make them replace one that is there: what only the other replica has acknowledged by then is lost.
var standbyDown = lasts(2*time.Second, time.Second)

// TestKilledPrimariesLoseNothingThatReplicasAcknowledged kills primaries under load, beside stock
// sentinels of both makes. With repl-ack-replies 1 no acknowledged call is lost and no limit is
// exceeded; every call that was answered is in the state of the next primary.
func TestKilledPrimariesLoseNothingThatReplicasAcknowledged(t *testing.T) {
	skipShort(t)
	storetest.Each(t, func(t *testing.T, watcher storetest.Engine) {
		e := storetest.Cellserver(t, watcher)
		s := e.Sentinels(t, 2, storetest.Options{NodeTimeout: standbyDown, Args: []string{"--repl-ack-replies", "1", "--repl-ack-timeout", "500"}})
		l := startStandbyLoad(t, 8, func() redis.UniversalClient {
			return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: storetest.MasterName, SentinelAddrs: s.Addrs(), MaxRetries: -1, ContextTimeoutEnabled: true})
		})
		primary := s.Master
		var away []time.Duration
		for range scaled(2, 25) {
			l.awaitAnswered(t, time.Since(l.began)+lasts(300*time.Millisecond, time.Second))
			primary.Kill()
			killed := time.Since(l.began)
			away = append(away, l.awaitAnswered(t, killed))
			next := s.AwaitFailover(primary)
			primary.Follow(next)
			primary.AwaitReady()
			primary.AwaitLink()
			primary = next
		}
		l.end()
		sum := l.check(t, primary.Client)
		excess := l.excess()
		slices.Sort(away)
		t.Logf("%d kills: %d acknowledged, %d lost, %d doubled, %d unknown; away %s to %s; excess %.1f", len(away), sum.acked, sum.lost, sum.doubled, sum.unknown,
			away[0].Round(time.Millisecond), away[len(away)-1].Round(time.Millisecond), excess)
		require.Zero(t, sum.lost)
		require.Zero(t, sum.doubled)
		require.LessOrEqual(t, excess, 0.0)
	})
}
