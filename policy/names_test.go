package policy_test

import (
	"strings"
	"testing"

	"github.com/cellserver/cellserver/policy"
	"github.com/stretchr/testify/require"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "api", "API_v2.0-beta", "0", "-", ".", strings.Repeat("n", 64)} {
		require.NoError(t, policy.CheckName([]byte(name)), name)
	}
	for _, name := range []string{"", strings.Repeat("n", 65), "a:b", "a b", "a#", "a/b", "a*", "ä", "a\x00", "\xff"} {
		require.ErrorIs(t, policy.CheckName([]byte(name)), policy.ErrName, name)
	}
}

func TestCheckPattern(t *testing.T) {
	for _, pattern := range []string{"a", "*", "acme*", "a*b", "\x00\xff", strings.Repeat("p", 1024)} {
		require.NoError(t, policy.CheckPattern([]byte(pattern)), pattern)
	}
	for _, pattern := range []string{"", strings.Repeat("p", 1025)} {
		require.ErrorIs(t, policy.CheckPattern([]byte(pattern)), policy.ErrPattern)
	}
}

func TestStateKeys(t *testing.T) {
	key := func(name, key string, i int, candidate bool) string {
		return string(policy.AppendStateKey([]byte("> "), []byte(name), []byte(key), i, candidate))
	}
	require.Equal(t, "> api:acme", key("api", "acme", 1, false))
	require.Equal(t, "> api:acme#2", key("api", "acme", 2, false))
	require.Equal(t, "> api:acme#16", key("api", "acme", 16, false))
	require.Equal(t, "> api#try:acme", key("api", "acme", 1, true))
	require.Equal(t, "> api#try:acme#3", key("api", "acme", 3, true))
	require.Equal(t, "> api:", key("api", "", 1, false))
	require.Equal(t, "> api:room#5#", key("api", "room#5", 1, false))
	require.Equal(t, "> api:room#5##2", key("api", "room#5", 2, false))
	require.Equal(t, "> api:room#5##", key("api", "room#5#", 1, false))
	for _, same := range []string{"acme#", "#", "##", "2", "acme2", "acme#0", "acme#1", "acme#01", "acme#2x", "acme#-2", "acme#2 ", "acme#02", "acme#17", "acme#20", "acme#100", "acme#99999999999999999999999", "acme16", "acme#1#", "acme#2#x"} {
		require.Equal(t, "> api:"+same, key("api", same, 1, false), "as before there was a mark")
	}
	for _, marked := range []string{"#2", "acme#9", "#10", "acme##16", "acme#1#2", "acme#15", "#2#", "acme#16###"} {
		require.Equal(t, "> api:"+marked+"#", key("api", marked, 1, false))
	}
}

// TestStateKeysDiffer: no two combinations of policy, key, clause and candidate share a state key,
// and the state key determines its policy and key. The keys are all combinations of up to five
// relevant characters.
func TestStateKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	check := func(name, key string) {
		for i := 1; i <= policy.MaxClauses; i++ {
			for _, candidate := range []bool{false, true} {
				state := policy.AppendStateKey(nil, []byte(name), []byte(key), i, candidate)
				if seen[string(state)] {
					t.Fatalf("%q", state)
				}
				seen[string(state)] = true
				n, ok := policy.StateNumber(state, []byte(name), []byte(key))
				want := uint8(i)
				if candidate {
					want += 64
				}
				if !ok || n != want {
					t.Fatalf("%q has the number %d", state, n)
				}
				if _, ok = policy.StateNumber(state, []byte(name), []byte(key+"#")); ok {
					t.Fatalf("%q is of another key", state)
				}
				of, k := policy.ParseStateKey(state)
				if string(k) != key || strings.TrimSuffix(string(of), "#try") != name {
					t.Fatalf("%q is of %q %q", state, of, k)
				}
			}
		}
	}
	keys := []string{""}
	for from := 0; len(keys[from]) < 5; from++ {
		for _, c := range "#1267" {
			keys = append(keys, keys[from]+string(c))
		}
	}
	for _, k := range keys {
		check("a", k)
	}
	for _, name := range []string{"a.", "a-try", "try"} {
		for _, k := range []string{"", ":", "b", "try:b", "#try:b", "b:b", "b#", "b##", "b#1", "b#2", "#try:b#1", "#try:b#2", "b#16", "b#16##", "b#02"} {
			check(name, k)
		}
	}
}

// TestNumbersOfStates: bans have numbers, too, and the states of others have none.
func TestNumbersOfStates(t *testing.T) {
	name := []byte("api")
	for _, key := range []string{"", "k", "k#2", ":", "#ban:k"} {
		for i, candidate := range []bool{false, true} {
			n, ok := policy.StateNumber(policy.AppendBanKey(nil, name, []byte(key), candidate), name, []byte(key))
			require.True(t, ok)
			require.Equal(t, uint8(128+i), n)
		}
	}
	for _, other := range []string{
		"", "api", "apik", "api:", "api:kk", "api:k#", "api:k#1", "api:k#0", "api:k#17", "api:k#02", "api:k#x2", "api:k2", "ap:k", "api#try", "api#tr:k",
		"api#try:", "api#ban:", "api#ban:kk", "api#ban", "api#try#try:k", "api#ban#try:k", "b:k",
	} {
		_, ok := policy.StateNumber([]byte(other), name, []byte("k"))
		require.False(t, ok, other)
	}
	_, ok := policy.StateNumber([]byte("api:k#2"), name, []byte("k#2"))
	require.False(t, ok, "the mark is missing")
}

// TestStatesAreParsed: the policy, the key and the number of a state say which state it is, for any key.
func TestStatesAreParsed(t *testing.T) {
	seen, numbers := map[string]bool{}, 0
	for _, name := range []string{"api", "a.b-c_D"} {
		for _, key := range []string{"", "k", "#", "k#2", "k#2#", "k#16##", "k#17", "a:b", ":#ban:x", "#ban:", "10.0.0.0/24", "2001:db8::/56", "k\x00#5"} {
			numbers = 0
			for n := 0; n < 256; n++ {
				state, ok := policy.AppendState([]byte("at "), []byte(name), []byte(key), uint8(n))
				if !ok {
					require.Equal(t, "at ", string(state))
					continue
				}
				require.LessOrEqual(t, n, policy.MaxState)
				state = state[3:]
				require.False(t, seen[string(state)], "%q", state)
				seen[string(state)] = true
				numbers++
				p, k, number, ok := policy.ParseState(state)
				require.True(t, ok, "%q", state)
				require.Equal(t, [3]any{name, key, n}, [3]any{string(p), string(k), int(number)}, "%q", state)
			}
			require.Equal(t, 2*policy.MaxClauses+2, numbers)
		}
	}
	for _, other := range []string{"", "api", ":k", "a b:k", "#ban:k", "api#other:k", "api#try#try:k", "#try:k"} {
		_, _, _, ok := policy.ParseState([]byte(other))
		require.False(t, ok, "%q", other)
	}
}
