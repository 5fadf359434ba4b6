package inproc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/internal/script"
)

// PlayScripts plays the scripts in dir, such as testdata/scripts of a group of commands. It plays
// each section once in each of its protocols, with a server of its own in a bubble. The script
// moves the clock of the server.
func PlayScripts(t *testing.T, dir string) {
	t.Helper()
	all, err := script.LoadDir(dir)
	require.NoError(t, err)
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			for _, section := range s.Sections {
				for _, proto := range section.Protocols {
					t.Run(section.RunName(proto), func(t *testing.T) {
						t.Parallel()
						PlaySection(t, s, section, proto, nil)
					})
				}
			}
		})
	}
}

// PlaySection plays section of the script s in the protocol version proto, with a server of its own
// in a bubble. groups returns the server's groups of commands; nil is all groups.
func PlaySection(t *testing.T, s *script.Script, section *script.Section, proto int, groups func() []command.Group) {
	t.Helper()
	dir := t.TempDir()
	Bubble(t, func(t *testing.T, w *World) {
		server := w.Still(Epoch, groups, SectionOptions(section, dir)...)
		result, err := script.Run(section, proto, server.Target(PutKinds(server.Put)))
		for _, d := range result.Differences {
			t.Error(s.Report(d))
		}
		require.NoError(t, err, s.File)
	})
}

// SectionOptions returns the options of a server for the section s: those that the section
// requires, and the directory dir.
func SectionOptions(s *script.Section, dir string) []string {
	options := []string{"--dir", dir}
	for _, option := range s.Config {
		options = append(options, "--"+option[0], option[1])
	}
	return options
}

// PutKinds returns a function that creates a key of a kind by calling store. The function gets the
// kind by the name that scripts use, "string" or "list".
func PutKinds(store func(key string, kind entry.Kind, value string, ttl time.Duration) error) func(kind, key, value string, ttl time.Duration) error {
	kinds := map[string]entry.Kind{"string": entry.String, "list": entry.List}
	return func(kind, key, value string, ttl time.Duration) error { return store(key, kinds[kind], value, ttl) }
}
