package keyspace_test

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/concurrency"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/internal/asks"
	"github.com/cellserver/cellserver/keyspace"
	"github.com/cellserver/cellserver/keyspace/effect"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/slidingwindow"
	"github.com/cellserver/cellserver/tokenbucket"
)

// plainCall makes a random call of a limiter that uses neither ID nor RESERVE, and takes one place at most.
func plainCall(v *keyspace.Handle, r *rand.Rand) {
	key := func(family byte) []byte { return []byte{family, byte('0' + r.IntN(5))} }
	n := r.Int64N(6) - 1
	quota, _ := gcra.NewQuota(9, 5, 60)
	window := slidingwindow.Call{
		Mode:  []slidingwindow.Mode{slidingwindow.Counter, slidingwindow.Fixed, slidingwindow.Log, slidingwindow.Buckets}[r.IntN(4)],
		Limit: 20, Window: time.Minute, Quantity: n, Slots: 6, LogMaxEntries: 100,
	}
	bucket := tokenbucket.Call{Mode: tokenbucket.Greedy, Capacity: 20, Init: 20, Count: 1, Period: time.Second, Interval: time.Second, Quantity: n}
	switch r.IntN(6) {
	case 0:
		bucket.Mode = tokenbucket.Interval
	case 1:
		bucket.Mode = tokenbucket.Leaky
	case 2:
		bucket.Mode = tokenbucket.Debt
	}
	lease := concurrency.Call{Op: concurrency.Op(1 + r.IntN(3)), Limit: 10, Lease: 20 * time.Second, Member: key('m'), MaxMembers: 100}
	switch r.IntN(5) {
	case 0:
		_, _ = asks.Throttle(v, 0, key('c'), &quota, max(0, n))
	case 1:
		_, _ = asks.Allow(v, 0, key('w'), &window)
	case 2:
		_, _ = asks.Acquire(v, 0, key('b'), &bucket)
	case 3:
		_, _ = asks.Lease(v, 0, key('l'), &lease)
	default:
		lease.Op, window.Quantity, bucket.Quantity = concurrency.Acquire, 1, 1
		_, _ = asks.Multi(v, 0, []decide.Clause{
			{Key: key('c'), Quota: &quota, Quantity: 1}, {Key: key('w'), Window: &window}, {Key: key('b'), Bucket: &bucket}, {Key: key('l'), Lease: &lease},
		}, make([]limit.Decision, 4))
	}
}

// TestPlainCallsAreRecordedAsBefore compares the records of calls that use none of ID, RESERVE and places with those
// of b3f17645^, the last build without these, byte for byte. So that build can read them. A bucket takes 16 bytes.
func TestPlainCallsAreRecordedAsBefore(t *testing.T) {
	ks, v, j, clock := journalled(t)
	r := rand.New(rand.NewPCG(1, 37))
	for range 20_000 {
		clock.Advance(time.Duration(r.Int64N(int64(time.Second))))
		v.Refresh()
		plainCall(v, r)
	}
	effects, greedy := map[string][]byte{}, 0 // by key, since those of one call are in no order
	for _, record := range j.records {
		for len(record) > 0 {
			e, rest, err := effect.Next(record)
			require.NoError(t, err)
			key := string(e.Key)
			effects[key] = append(effects[key], record[:len(record)-len(rest)]...)
			record = rest
		}
	}
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(effects)) {
		_, _ = sum.Write(effects[key])
	}
	for _, e := range all(ks) {
		if e.Kind == entry.OfBucket(tokenbucket.Greedy) {
			require.Len(t, e.Value, 16)
			greedy++
		}
	}
	require.Positive(t, greedy)
	require.Equal(t, "6accc34f2b43bb39859fa39a3c4dbbc8a82ce2b4db0993ec3d50a374eab82c56", hex.EncodeToString(sum.Sum(nil)))
}
