package decide_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/reservation"
	"github.com/cellserver/cellserver/slidingwindow"
)

// TestFingerprint: the time of a reservation is part of its fingerprint, and the bound of a key is not.
// Values that earlier versions have stored have the fingerprints of calls with ID, so these never change.
func TestFingerprint(t *testing.T) {
	a := decide.Ask{
		Family: decide.Window,
		Window: slidingwindow.Call{Mode: slidingwindow.Fixed, Limit: 10, Window: time.Minute, Quantity: 3},
	}
	plain := a.Fingerprint()
	require.Equal(t, uint32(0xdda92f06), plain)
	a.Reserve.Max = 5
	require.Equal(t, plain, a.Fingerprint())
	prints := map[uint32]bool{plain: true}
	for _, ttl := range []time.Duration{reservation.MinTTL, reservation.MinTTL + 1, reservation.MaxTTL} {
		a.Reserve.TTL = ttl
		prints[a.Fingerprint()] = true
	}
	require.Len(t, prints, 4)
}
