package docgen

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/internal/missing"
)

// redisNames returns all commands and subcommands of Redis 7.2.
func redisNames(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../compat_test/testdata/redis-7.2-commands.txt")
	require.NoError(t, err)
	names := strings.Fields(string(text))
	require.True(t, slices.IsSorted(names))
	require.Len(t, slices.Compact(slices.Clone(names)), 370)
	return names
}

// faults compares Redis' commands with the command table and the list of missing commands. It
// returns a line for each name that is not in exactly one of these two.
func faults(redis []string, here func(string) bool, groups []missing.Group) (lines []string) {
	times := map[string]int{}
	for _, g := range groups {
		for _, name := range g.Commands {
			times[name]++
			switch {
			case times[name] > 1:
				lines = append(lines, name+" is listed twice as missing")
			case here(name):
				lines = append(lines, name+" is listed as missing, and is in the command table")
			case !slices.Contains(redis, name):
				lines = append(lines, name+" is listed as missing, and Redis lacks it")
			}
		}
	}
	for _, name := range redis {
		if times[name] == 0 && !here(name) {
			lines = append(lines, name+" is neither in the command table nor listed as missing")
		}
	}
	return lines
}

// newerNames returns the commands added after Redis 7.2.
func newerNames(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../../compat_test/testdata/newer-commands.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		require.Regexp(t, `^(redis-(7\.4|8\.[02468]))?( ?valkey-(8\.[01]|9\.[012]))?$`, strings.Join(fields[1:], " "), fields[0])
		names = append(names, fields[0])
	}
	require.Empty(t, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(redisNames(t), name) }))
	return names
}

// TestEveryNewerCommandIsHereOrListedAsMissing compares the table and the list with Redis 8.8 and
// Valkey 9.2.
func TestEveryNewerCommandIsHereOrListedAsMissing(t *testing.T) {
	require.Empty(t, faults(newerNames(t), inTable(), missing.Newer))
	require.Contains(t, newerNames(t), "increx")
}

func inTable() func(string) bool {
	here := map[string]bool{}
	for _, c := range commands.NewTable().All() {
		here[c.Name] = true
	}
	return func(name string) bool { return here[name] }
}

func TestEveryCommandOfRedisIsHereOrListedAsMissing(t *testing.T) {
	require.Empty(t, faults(redisNames(t), inTable(), missing.FromRedis))
	for _, g := range slices.Concat(missing.FromRedis, missing.Newer) {
		require.NotEmpty(t, g.What)
		require.NotEmpty(t, g.Commands, g.What)
		require.NotEmpty(t, g.Why, g.What)
		require.Contains(t, []string{missing.Planned, missing.StaysOut}, g.Status, g.What)
	}
}

// TestNoEntryOfTheMissingListIsIdle removes each name from the list, adds one that the table has,
// and one that no server has. The comparison must report each change.
func TestNoEntryOfTheMissingListIsIdle(t *testing.T) {
	redis, here := redisNames(t), inTable()
	for i, g := range missing.FromRedis {
		for j, name := range g.Commands {
			changed := slices.Clone(missing.FromRedis)
			changed[i].Commands = slices.Delete(slices.Clone(g.Commands), j, j+1)
			require.Equal(t, []string{name + " is neither in the command table nor listed as missing"}, faults(redis, here, changed))
		}
	}
	more := func(name string) []missing.Group {
		return append(slices.Clone(missing.FromRedis), missing.Group{What: "more", Status: missing.StaysOut, Why: "why", Commands: []string{name}})
	}
	require.Equal(t, []string{"get is listed as missing, and is in the command table"}, faults(redis, here, more("get")))
	require.Equal(t, []string{"getall is listed as missing, and Redis lacks it"}, faults(redis, here, more("getall")))
	require.Equal(t, []string{"sort is listed twice as missing"}, faults(redis, here, more("sort")))
}

// TestMissingPageNamesEveryMissingCommand parses the table of the page.
func TestMissingPageNamesEveryMissingCommand(t *testing.T) {
	var read []string
	for line := range strings.Lines(MissingPage(commands.NewTable())) {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || strings.HasPrefix(line, "| not here") {
			continue
		}
		for name := range strings.SplitSeq(cells[1], ", ") {
			container, subs, isContainer := strings.Cut(strings.ToLower(name), " ")
			if !isContainer {
				read = append(read, container)
				continue
			}
			for sub := range strings.SplitSeq(subs, "/") {
				read = append(read, container+"|"+sub)
			}
		}
	}
	here := inTable()
	require.ElementsMatch(t, slices.DeleteFunc(slices.Concat(redisNames(t), newerNames(t)), here), read)
}
