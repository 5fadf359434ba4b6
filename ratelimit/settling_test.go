package ratelimit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/reservation"
)

// TestStatesOfASettlement: the parts of a link belong to the states of their policies and keys, each of which is named once.
func TestStatesOfASettlement(t *testing.T) {
	a := decide.Ask{Family: decide.Settle, Key: []byte("k"), Settlement: reservation.Settlement{Op: reservation.Cancel}}
	ratelimit.Settle(&a, []byte("api"), []byte("k"))
	p := a.Program.(decide.Reaching)
	keys := [][]byte{[]byte("api:k#2"), []byte("org:o"), []byte("org:o#16"), []byte("x#2#"), []byte("api:k#2#"), []byte("api:k#2##3")}
	p.Reach(keys)
	clear(keys[1])
	require.Equal(t, [][]byte{[]byte("org:o"), []byte("x#2#"), []byte("api:k#2#")}, p.States())
	for key, want := range map[string][2]int{
		"api:k": {0, 1}, "api:k#16": {0, 16}, "org:o": {1, 1}, "org:o#16": {1, 16}, "x#2#": {2, 1}, "api:k#2#": {3, 1}, "api:k#2##3": {3, 3},
	} {
		state, n, ok := p.Locate([]byte(key))
		require.True(t, ok, key)
		require.Equal(t, want, [2]int{state, int(n)}, key)
	}
	_, _, ok := p.Locate([]byte("other:o"))
	require.False(t, ok)
	p.Reach(nil)
	require.Empty(t, p.States())
	require.True(t, p.(decide.Freeing).Frees(), "clients that wait for room may pass")
}
