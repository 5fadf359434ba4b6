package idempotency_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/limit"
)

// known is a call of the model.
type known struct {
	token string
	idempotency.Record
}

// model remembers calls in a slice, the oldest first.
type model []known

func (m model) find(now limit.Instant, token string) (r idempotency.Record, found bool) {
	for _, k := range m {
		if k.token == token && k.Until > now {
			r, found = k.Record, true
		}
	}
	return r, found
}

// TestRandomCalls compares the records of a key with the model, and the value of a follower that
// applies deltas with the value itself.
func TestRandomCalls(t *testing.T) {
	for seed := range effort.Steps(20, 200) {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		most := uint32(1 + random.IntN(400))
		names := 1 + random.IntN(1000)
		var (
			m               model
			value, follower []byte
			now             = limit.Instant(1e18)
			p               idempotency.Plan
			older           [][]byte // deltas since the last whole value; snapshot is a value among them
			snapshot        []byte
			from            int // index of the first delta that the snapshot gets
		)
		for range 1500 {
			now = now.Add(time.Duration(random.IntN(1000)) * time.Millisecond / 10)
			if random.IntN(200) == 0 {
				now = now.Add(70 * time.Second)
			}
			token := fmt.Sprint("token ", random.IntN(names))
			var records []byte
			state := []byte("state of 16 byte")[:16-random.IntN(2)]
			if value != nil {
				var err error
				_, err = idempotency.Check(value)
				require.NoError(t, err)
				_, records = idempotency.Split(value)
				got, found := idempotency.Find(records, now, &idempotency.Call{Token: []byte(token)})
				want, known := m.find(now, token)
				require.Equal(t, known, found, "seed %d", seed)
				require.Equal(t, want, got)
				if found {
					continue
				}
			}
			c := &idempotency.Call{Token: []byte(token), Print: random.Uint32(), TTL: time.Minute, Max: most, Seed: uint64(seed)}
			if random.IntN(50) == 0 {
				c.TTL = time.Second
			}
			r := idempotency.Record{Ready: limit.MinInstant}
			if random.IntN(4) == 0 {
				r.Missing = random.Int64()
			}
			if random.IntN(4) == 0 {
				r.Ready = now.Add(time.Second)
			}
			if random.IntN(10) == 0 {
				c = nil
			}
			p.Decide(records, now, c, r)
			for len(m) > 0 && m[0].Until <= now {
				m = m[1:]
			}
			if c != nil {
				for len(m) >= int(c.Max) {
					m = m[1:]
				}
				r.Until, r.Print = now.Add(c.TTL), c.Print
				m = append(m, known{token, r})
			}
			require.Equal(t, len(m) == 0, p.Empty())
			if p.Empty() {
				value, follower, older, snapshot = nil, nil, nil, nil
				continue
			}
			var delta []byte
			if value != nil {
				delta = p.AppendDelta(nil, records)
				idempotency.MarkState(delta, true)
				delta = append(delta, state...)
			}
			value = p.Apply(value, records, state, nil)
			if delta == nil {
				follower = bytes.Clone(value)
				older, snapshot = nil, nil
			} else {
				d, err := idempotency.ReadDelta(delta)
				require.NoError(t, err)
				require.True(t, d.Whole)
				follower = d.Apply(follower, bytes.Clone(d.State), nil)
				older = append(older, delta)
			}
			require.True(t, bytes.Equal(value, follower), "seed %d", seed)
			if random.IntN(50) == 0 {
				snapshot, from = bytes.Clone(value), max(0, len(older)-100)
			}
			if snapshot != nil && random.IntN(20) == 0 { // a fuzzy snapshot gets earlier deltas once more
				again := bytes.Clone(snapshot)
				for _, delta := range older[from:] {
					d, err := idempotency.ReadDelta(delta)
					require.NoError(t, err)
					again = d.Apply(again, bytes.Clone(d.State), nil)
					_, err = idempotency.Check(again)
					require.NoError(t, err)
				}
				// The capacity may differ, since the snapshot has grown for calls that it has lost again.
				require.True(t, bytes.Equal(idempotency.Compact(value), idempotency.Compact(again)), "seed %d", seed)
			}
		}
	}
}
