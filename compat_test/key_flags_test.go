//go:build real

package compat_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
)

// arityCalls are a call of every command of the table: with as many words as its arity asks for,
// and one more where it takes any number. Each word may be a number of keys.
func arityCalls() (calls []string) {
	for _, c := range commands.NewTable().All() {
		words := strings.ReplaceAll(c.Name, "|", " ")
		n := c.Arity
		if n < 0 {
			n = 1 - n
		}
		for len(strings.Fields(words)) < n {
			words += " 1"
		}
		calls = append(calls, words)
	}
	return calls
}

// TestKeyFlagsAreThoseOfRedis: of every call in which Redis finds keys, both servers name the
// same ones, and the same of how they are used. What a rule such as %R~ allows depends on it.
func TestKeyFlagsAreThoseOfRedis(t *testing.T) {
	w := startTwins(t, "2")
	names := make(map[string]bool)
	for _, call := range append(arityCalls(), aclCalls...) {
		words := strings.Fields(call)
		theirs, ours := w.ask(t, append([]string{"COMMAND", "GETKEYSANDFLAGS"}, words...)...)
		name := strings.ToLower(words[0])
		switch {
		case strings.HasPrefix(theirs.String(), "-"): // it has no keys there, or is ours alone
			continue
		case name == "fcall" || name == "fcall_ro": // there are no functions here
			continue
		}
		require.Equal(t, theirs.String(), ours.String(), call)
		names[name] = true
	}
	require.Greater(t, len(names), 100)
}
