package idempotency_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/limit"
)

// remembered returns a value that remembers n calls, and the delta of the last of them.
func remembered(n int) (value, delta []byte) {
	var (
		p       idempotency.Plan
		records []byte
	)
	for i := range n {
		if value != nil {
			_, records = idempotency.Split(value)
		}
		c := &idempotency.Call{Token: fmt.Append(nil, i), TTL: time.Minute, Max: 50, Seed: 3}
		r := idempotency.Record{Ready: limit.MinInstant, Missing: int64(i % 3)}
		p.Decide(records, limit.Instant(i), c, r)
		if value != nil {
			delta = append(p.AppendDelta(nil, records), "state"...)
			idempotency.MarkState(delta, true)
		}
		value = p.Apply(value, records, []byte("state"), nil)
	}
	return value, delta
}

// FuzzValue changes values and deltas at random. Those that are accepted can be used without a panic, and
// the results are accepted, too.
func FuzzValue(f *testing.F) {
	for _, n := range []int{1, 2, 5, 40, 70} {
		value, delta := remembered(n)
		f.Add(value, delta)
	}
	f.Fuzz(func(t *testing.T, value, delta []byte) {
		_, err := idempotency.Check(value)
		if err != nil {
			return
		}
		_, records := idempotency.Split(value)
		c := &idempotency.Call{Token: []byte("token"), TTL: time.Second, Max: 20, Seed: 1}
		_, _ = idempotency.Find(records, 7, c)
		_ = idempotency.Count(records, 7)
		var p idempotency.Plan
		p.Decide(records, 7, c, idempotency.Record{Missing: 1, Ready: 9})
		changed := bytes.Clone(value)
		var state []byte
		state, records = idempotency.Split(changed)
		next := p.Apply(changed, records, state, nil)
		_, err = idempotency.Check(next)
		require.NoError(t, err)
		if d, err := idempotency.ReadDelta(delta); err == nil {
			changed = bytes.Clone(value)
			state, _ = idempotency.Split(changed)
			next = d.Apply(changed, state, nil)
			_, err = idempotency.Check(next)
			require.NoError(t, err)
		}
	})
}
