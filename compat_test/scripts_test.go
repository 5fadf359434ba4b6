package compat_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/limit"
)

// scriptStart is the instant at which every section begins in process, the one of
// the recorded calls.
const scriptStart limit.Instant = 1_700_000_000_000_000_000

// scriptFolders returns the folders of scripts that a server has to pass: a plain Redis those of
// Redis, one with redis-cell also CL.THROTTLE, and cellserver all of them.
var scriptFolders = map[string][]string{
	"Redis":      {"redis"},
	"redis-cell": {"redis", "redis-cell"},
	"cellserver": script.Folders,
}

// loadScripts parses the scripts for a kind of server: those of this folder, and those beside the
// groups of commands.
func loadScripts(tb testing.TB, kind string) []*script.Script {
	tb.Helper()
	all, err := script.Load("..", scriptFolders[kind]...)
	require.NoError(tb, err)
	return all
}

// TestScripts plays the scripts that are about several groups of commands over RESP2 and RESP3 in
// process, where time is what the script says. Tests of the groups play the others so. With the tag
// real TestScriptsOverSockets and TestScriptsAgainstAddress play all of them elsewhere.
func TestScripts(t *testing.T) { inproc.PlayScripts(t, "scripts") }

// TestScriptsOfGroupsArePlayed: a package below commands that has scripts has the test that plays them,
// and the tests here find them.
func TestScriptsOfGroupsArePlayed(t *testing.T) {
	var places []string
	require.NoError(t, filepath.WalkDir("../commands", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasSuffix(filepath.ToSlash(path), "/testdata/scripts") {
			places = append(places, path)
		}
		return err
	}))
	require.NotEmpty(t, places)
	files, err := script.Files("..", script.Folders...)
	require.NoError(t, err)
	for _, place := range places {
		text, err := os.ReadFile(filepath.Join(place, "../../scripts_test.go"))
		require.NoError(t, err)
		require.Contains(t, string(text), `inproc.PlayScripts(t, "testdata/scripts")`, place)
		require.True(t, slices.ContainsFunc(files, func(file string) bool {
			return strings.HasPrefix(file, place+string(filepath.Separator))
		}), "%s is in none of the places of package script", place)
	}
}

// playSection runs one section and reports each unexpected difference.
func playSection(t *testing.T, s *script.Script, section *script.Section, proto int, target script.Target, known expectedDifferences) {
	t.Helper()
	result, err := script.Run(section, proto, target)
	if result.LeftOut != "" {
		t.Logf("left out from %s", result.LeftOut)
	}
	if whole := known.find(s.Name, section.Title, "*", proto); whole != nil {
		switch {
		case err != nil || len(result.Differences) > 0:
			whole.note(1, 1)
		case result.LeftOut != "":
			whole.noteLeftOut()
		default:
			whole.note(1, 0)
		}
		return
	}
	for _, command := range result.Answered {
		if e := known.find(s.Name, section.Title, command, proto); e != nil {
			e.note(1, 0)
		}
	}
	for _, d := range result.Differences {
		if e := known.find(s.Name, section.Title, d.Command, proto); e != nil {
			e.note(0, 1)
			continue
		}
		t.Error(s.Report(d))
	}
	if err != nil {
		t.Errorf("%s: %v", s.File, err)
	}
}

// TestEveryArity: each command says so when it has a word too few or too many.
func TestEveryArity(t *testing.T) {
	s, err := inproc.Feed(scriptStart)
	require.NoError(t, err)
	defer s.Close()
	for _, command := range s.Server().Engine().Table().All() {
		container, sub, isSub := strings.Cut(command.Name, "|")
		call := []string{container}
		if isSub {
			call = append(call, sub)
		}
		wrong := [][]string{}
		if least := max(command.Arity, -command.Arity); least > len(call) {
			wrong = append(wrong, append(call, make([]string, least-len(call)-1)...))
		}
		if command.Arity > 0 && command.Sub == nil {
			wrong = append(wrong, append(call, make([]string, command.Arity+1-len(call))...))
		}
		for _, words := range wrong {
			reply, err := s.Do(words...)
			require.NoError(t, err)
			want := "wrong number of arguments for '" + command.Name + "' command\r\n"
			require.True(t, strings.HasSuffix(string(reply), want), "%q: %q", words, reply)
			require.Equal(t, byte('-'), reply[0])
		}
	}
}

// TestScriptsCallEveryCommand: no command or subcommand of the table goes without
// being called by a script, but for those of a short list with reasons.
func TestScriptsCallEveryCommand(t *testing.T) {
	s, err := inproc.Feed(scriptStart)
	require.NoError(t, err)
	defer s.Close()
	table := s.Server().Engine().Table()
	called := map[string]bool{}
	for _, s := range loadScripts(t, "cellserver") {
		for _, words := range s.Commands() {
			command := table.Lookup([]byte(words[0]))
			if command == nil {
				continue
			}
			called[command.Name] = true
			if len(words) > 1 {
				if sub := command.Subcommand([]byte(words[1])); sub != nil {
					called[sub.Name] = true
				}
			}
		}
	}
	excused := map[string]bool{}
	for _, row := range readTable(t, "Commands that no script calls") {
		require.Len(t, row, 2, "command and reason: %q", row)
		excused[row[0]] = true
	}
	var names []string
	for _, command := range table.All() {
		names = append(names, command.Name)
		if called[command.Name] == excused[command.Name] {
			if excused[command.Name] {
				t.Errorf("%s is called by a script: its excuse in %s is not needed", command.Name, knownDifferences)
			} else {
				t.Errorf("%s is called by no script", command.Name)
			}
		}
	}
	for name := range excused {
		require.True(t, slices.Contains(names, name), "%s is excused, but there is no such command", name)
	}
}
