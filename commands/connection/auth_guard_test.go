package connection

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
)

const guardStart limit.Instant = 1_700_000_000_000_000_000

// guesses makes an attempt that fails at now, and returns how long it had to wait; -1 if it was
// refused.
func guesses(g *authGuard, addr string, now limit.Instant) time.Duration {
	a := g.Attempt(addr, now)
	if a.Refused {
		return -1
	}
	g.Judged(a, now, false, true)
	return a.Wait
}

func TestGuardOfAnAddress(t *testing.T) {
	g := newAuthGuard()
	for range 10 {
		require.Zero(t, guesses(g, "a", guardStart))
	}
	for i := range 5 {
		require.Equal(t, time.Duration(i+1)*time.Second, guesses(g, "a", guardStart))
	}
	for range 100 {
		require.EqualValues(t, -1, guesses(g, "a", guardStart), "the line is full")
	}
	require.Zero(t, guesses(g, "b", guardStart), "another address")
	require.Equal(t, 5*time.Second, guesses(g, "a", guardStart.Add(time.Second)))

	// An attempt with the right password waits for its turn, and then takes its charge back.
	a := g.Attempt("a", guardStart.Add(2*time.Second))
	require.Equal(t, 5*time.Second, a.Wait)
	g.Judged(a, guardStart.Add(2*time.Second), true, true)
	a = g.Attempt("a", guardStart.Add(2*time.Second))
	require.Equal(t, 5*time.Second, a.Wait)
	g.Dropped(a, guardStart.Add(2*time.Second))
	require.Equal(t, 5*time.Second, guesses(g, "a", guardStart.Add(2*time.Second)))
	require.EqualValues(t, 10+5+100+1+1+1, g.failures())
}

// TestGuardOfAllAddresses: over all addresses, 100 failures are answered at once and then ten a
// second. For an address that has logged in with a password only its own limit holds.
func TestGuardOfAllAddresses(t *testing.T) {
	g := newAuthGuard()
	a := g.Attempt("friend", guardStart)
	g.Judged(a, guardStart, true, true)
	a = g.Attempt("open", guardStart)
	g.Judged(a, guardStart, true, false) // a login to a user without a password does not exempt an address
	tried := 0
	for second := range 60 {
		now := guardStart.Add(time.Duration(second) * time.Second)
		for i := range 1000 {
			if guesses(g, fmt.Sprintf("10.%d.%d.%d", second, i>>8, i&255), now) >= 0 {
				tried++
			}
		}
	}
	require.InDelta(t, 100+50+590, tried, 1)
	now := guardStart.Add(59 * time.Second)
	require.Zero(t, g.Attempt("friend", now).Wait)
	require.True(t, g.Attempt("open", now).Refused)
	require.True(t, g.Attempt("friend", guardStart.Add(knownFor)).Together)
	require.LessOrEqual(t, len(g.tats), maxAuthAddresses)
}

// TestGuardTakesANetworkForAnAddress: a host with IPv6 mostly has 2^64 addresses, so its /64
// network counts as one.
func TestGuardTakesANetworkForAnAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "2001:db8:1:2::": "2001:db8:1:2::/64", "::1": "::/64",
		"fe80::1%eth0": "fe80::/64", "::ffff:10.0.0.1": "::ffff:10.0.0.1", "10.0.0.1": "10.0.0.1", "unix": "unix", "": "",
	} {
		require.Equal(t, want, sourceOf(addr), addr)
	}
}
