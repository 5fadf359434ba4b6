//go:build real

package compat_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListOfCommandsIsThatOfRedis compares the list of Redis 7.2, against which
// docs/missing.md is checked, with a running Redis.
func TestListOfCommandsIsThatOfRedis(t *testing.T) {
	text, err := os.ReadFile("testdata/redis-7.2-commands.txt")
	require.NoError(t, err)
	want := strings.Fields(string(text))
	w := startTwins(t, "2")
	version := redisVersion()
	if strings.HasPrefix(version, "7.0.") {
		since72 := []string{"client|no-touch", "client|setinfo", "cluster|myshardid", "waitaof"}
		require.Subset(t, want, since72)
		want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(since72, name) })
	}
	theirs, _ := w.ask(t, "COMMAND", "LIST")
	var got []string
	for _, element := range theirs.Elems {
		got = append(got, element.Text)
	}
	if strings.HasPrefix(version, "7.0.") || strings.HasPrefix(version, "7.2.") {
		require.ElementsMatch(t, want, got)
		return
	}
	require.Subset(t, got, want, "a later version has more")
}
