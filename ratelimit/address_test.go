package ratelimit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/ratelimit"
)

// ofAddresses returns the entry of a policy called name whose keys are addresses.
func ofAddresses(t testing.TB, name, clauses string) policy.Entry {
	t.Helper()
	e := named(t, name, clauses)
	e.Key = policy.KeyForm{IP: true, V4: 24, V6: 56}
	return e
}

// TestAddressesShareTheStateOfTheirNetwork: the state key of the front is not used, and the entry for the address as
// it came applies.
func TestAddressesShareTheStateOfTheirNetwork(t *testing.T) {
	f := open(t, ofAddresses(t, "api", "SW 9 60 FIXED"), forKey(policy.Block, "10.0.0.8/32"))
	front := func(c *ratelimit.Call) { c.StateKey = []byte("api:none") }
	require.EqualValues(t, 8, f.decided(t, "10.0.0.7:1", front).Remaining)
	require.EqualValues(t, 7, f.decided(t, "::ffff:10.0.0.9", front).Remaining)
	require.EqualValues(t, 1, f.decided(t, "10.0.0.8", front).Refused)
	require.EqualValues(t, 6, f.decided(t, "10.0.0.0/24").Remaining)
	e, err := f.Explain(f.call("10.0.0.7:1"))
	require.NoError(t, err)
	require.Equal(t, "10.0.0.0/24", string(e.Network))
	require.Equal(t, "api:10.0.0.0/24", string(e.Clauses[0].State))
}

// TestNoAddress: the error comes before anything is charged, also by the other policies of a call.
func TestNoAddress(t *testing.T) {
	f := open(t, named(t, "user", "SW 9 60 FIXED"), ofAddresses(t, "api", "SW 9 60 FIXED"))
	for key, want := range map[string]error{"acme": ratelimit.ErrNoAddress, "": ratelimit.ErrNoAddress, "10.0.0.0/23": ratelimit.ErrWide} {
		_, err := f.decide(key)
		require.ErrorIs(t, err, want)
		parts := f.parts([]string{"user", "api"})
		parts[1].Key = []byte(key)
		at, err := f.FindAll(parts)
		require.Equal(t, 1, at)
		require.ErrorIs(t, err, want)
		state, err := ratelimit.AppendStateOf([]byte("before"), f.table.Policy([]byte("api")), []byte(key), start)
		require.ErrorIs(t, err, want)
		require.Equal(t, "before", string(state))
	}
	parts := f.parts([]string{"api", "user", "api"})
	parts[0].Key, parts[2].Key = []byte("10.0.0.7"), []byte("10.0.0.9")
	at, err := f.FindAll(parts)
	require.Equal(t, 2, at)
	require.ErrorIs(t, err, ratelimit.ErrTwice)
	parts[2].Key = []byte("10.0.1.9")
	require.EqualValues(t, 8, f.all(t, parts).Remaining)
	state, err := ratelimit.AppendStateOf(nil, f.table.Policy([]byte("user")), []byte("any"), start)
	require.NoError(t, err)
	require.Equal(t, "any", string(state))
}
