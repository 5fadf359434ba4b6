package states

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/idempotency"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
)

// TestPlain: a limiter that remembers calls and has reservations is the same limiter without them.
func TestPlain(t *testing.T) {
	var e, same entry.Entry
	for i, token := range []string{"", "a", "b", ""} {
		a := &decide.Ask{Family: decide.Window, Window: slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 9, Window: time.Minute, Quantity: 1}}
		var p decide.Plan
		require.NoError(t, p.One(&same, epoch, a))
		same = entry.Entry{Kind: p.Kind, Expiry: p.Expiry, Value: p.Apply(same.Value, nil)}
		if token != "" {
			a.ID = idempotency.Call{Token: []byte(token), TTL: time.Hour, Max: 9, Seed: 1}
			if token == "b" {
				a.Reserve = reservation.Terms{TTL: time.Hour, Max: 9}
			}
		}
		require.NoError(t, p.One(&e, epoch, a))
		e = entry.Entry{Kind: p.Kind, Expiry: p.Expiry, Value: p.Apply(e.Value, nil)}
		require.Equal(t, i > 0, e.Kind.Remembers())
		plain := Plain(&e)
		require.Equal(t, same.Kind, plain.Kind)
		require.Equal(t, same.Value, plain.Value)
	}
	text := entry.Entry{Kind: entry.String, Value: []byte("7")}
	require.Equal(t, text, Plain(&text))
}
