package compat_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/script"
	"github.com/cellserver/cellserver/keyspace/entry"
	"github.com/cellserver/cellserver/limit"
)

// scriptStart is the instant at which every section begins in process, the one of
// the recorded calls.
const scriptStart limit.Instant = 1_700_000_000_000_000_000

// scriptFolders says which scripts a server has to answer: plain Redis what is
// Redis', one with redis-cell loaded CL.THROTTLE too, and we everything.
var scriptFolders = map[string][]string{
	"Redis":      {"redis"},
	"redis-cell": {"redis", "redis-cell"},
	"cellserver": {"redis", "redis-cell", "cellserver"},
}

// loadScripts parses the scripts for a kind of server.
func loadScripts(tb testing.TB, kind string) (all []*script.Script) {
	tb.Helper()
	for _, folder := range scriptFolders[kind] {
		files, err := filepath.Glob(filepath.Join("scripts", folder, "*.script"))
		require.NoError(tb, err)
		require.NotEmpty(tb, files, folder)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(tb, err)
			name := folder + "/" + strings.TrimSuffix(filepath.Base(f), ".script")
			s, err := script.Parse(name, string(text))
			require.NoError(tb, err)
			all = append(all, s)
		}
	}
	return all
}

// TestScripts plays every script over RESP2 and RESP3 in process, where time is what the script
// says. With the tag real TestScriptsOverSockets and TestScriptsAgainstAddress play them elsewhere.
func TestScripts(t *testing.T) {
	for _, s := range loadScripts(t, "cellserver") {
		t.Run(s.Name, func(t *testing.T) {
			for _, section := range s.Sections {
				for _, proto := range section.Protocols {
					t.Run(runName(section, proto), func(t *testing.T) {
						t.Parallel()
						playInProcess(t, s, section, proto, nil)
					})
				}
			}
		})
	}
}

func runName(s *script.Section, proto int) string {
	return s.Title + "/RESP" + string(rune('0'+proto))
}

// playInProcess plays a section on a server of its own, in a bubble, with groups of commands
// unless that is nil.
func playInProcess(t *testing.T, s *script.Script, section *script.Section, proto int, groups func() []command.Group) {
	t.Helper()
	dir := t.TempDir()
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		server := w.Still(scriptStart, groups, optionsOf(section, dir)...)
		playSection(t, s, section, proto, script.Target{Dial: server.Connect, Clock: server.Clock, Put: put(server.Put)}, nil)
	})
}

// optionsOf are the options that a section wants, and the directory of its server.
func optionsOf(s *script.Section, dir string) []string {
	options := []string{"--dir", dir}
	for _, option := range s.Config {
		options = append(options, "--"+option[0], option[1])
	}
	return options
}

// put makes keys of the kinds that scripts name by what stores a kind of value.
func put(store func(key string, kind entry.Kind, value string, ttl time.Duration) error) func(kind, key, value string, ttl time.Duration) error {
	kinds := map[string]entry.Kind{"string": entry.String, "list": entry.List}
	return func(kind, key, value string, ttl time.Duration) error { return store(key, kinds[kind], value, ttl) }
}

// playSection runs one section and reports each difference that nobody expects.
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
		t.Errorf("scripts/%s.script:%d: %s\n%s", s.Name, d.Line, d.Command, shorten(d.What))
	}
	if err != nil {
		t.Errorf("scripts/%s.script: %v", s.Name, err)
	}
}

// shorten keeps a reply of many pages from hiding the others.
func shorten(s string) string {
	const most = 3000
	if len(s) > most {
		return s[:most] + " ..."
	}
	return s
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
