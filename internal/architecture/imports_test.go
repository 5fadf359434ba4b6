package architecture_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/architecture"
	"github.com/cellserver/cellserver/internal/effort"
)

// TestModuleFollowsTheRules holds the module itself to the rules.
func TestModuleFollowsTheRules(t *testing.T) {
	effort.Alone(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "go.mod"))

	violations, err := architecture.Check(os.DirFS(root))
	require.NoError(t, err)
	for _, v := range violations {
		t.Error(v)
	}
}

// TestEachRuleFindsAFileThatBreaksIt shows for each rule a file that breaks it and a similar one that
// does not, so a rule that finds nothing any more fails the test.
func TestEachRuleFindsAFileThatBreaksIt(t *testing.T) {
	const own = "github.com/cellserver/cellserver/"
	tests := map[string]struct {
		file, source string
		want         string // a part of the violation; empty means none
	}{
		"algorithm with a lock":         {"gcra/a.go", `package gcra; import "sync/atomic"`, "no lock"},
		"algorithm with a context":      {"tokenbucket/a.go", `package tokenbucket; import "context"`, "no waiting"},
		"algorithm with a socket":       {"slidingwindow/a.go", `package slidingwindow; import "net/netip"`, "no I/O"},
		"algorithm with a file":         {"concurrency/a.go", `package concurrency; import "os"`, "no I/O"},
		"algorithm with a log":          {"limit/a.go", `package limit; import "log/slog"`, "limit imports log/slog"},
		"algorithm in a test":           {"gcra/a_test.go", `package gcra_test; import "os"`, ""},
		"algorithm with the vocabulary": {"gcra/a.go", `package gcra; import "` + own + `limit"`, ""},
		"algorithm that knows another":  {"gcra/a.go", `package gcra; import "` + own + `tokenbucket"`, "gcra imports tokenbucket"},
		"algorithm with a timer":        {"gcra/a.go", `package gcra; import "time"; var t = time.NewTimer`, "gcra calls time.NewTimer"},
		"algorithm with a duration":     {"gcra/a.go", `package gcra; import "time"; var d = time.Second`, ""},
		"leaf that builds on another":   {"limit/a.go", `package limit; import "` + own + `gcra"`, "imports none"},

		"store that knows its files":    {"keyspace/a.go", `package keyspace; import "` + own + `persistence"`, "it declares Journal"},
		"store that knows commands":     {"keyspace/a.go", `package keyspace; import "` + own + `commands"`, "keyspace imports commands"},
		"commands that know the store":  {"command/a.go", `package command; import "` + own + `keyspace"`, "no session and no store"},
		"commands with their test's":    {"commands/a_test.go", `package commands_test; import "` + own + `keyspace"`, ""},
		"commands with their protocol":  {"commands/keys/a.go", `package keys; import "` + own + `resp"`, ""},
		"transport that knows RESP":     {"transport/a.go", `package transport; import "` + own + `resp"`, "moves bytes"},
		"the assembly":                  {"server/a.go", `package server; import "` + own + `keyspace"`, ""},
		"part that imports the whole":   {"metrics/a.go", `package metrics; import "` + own + `server"`, "call no other part"},
		"package without a place":       {"novelty/a.go", `package novelty; import "` + own + `limit"`, "no place in the import direction"},
		"production with a test's tool": {"server/a.go", `package server; import "` + own + `internal/clocktest"`, "code that tests share"},
		"program":                       {"cmd/cellserver/main.go", `package main; import "` + own + `server"`, ""},

		"test that starts a program":     {"persistence/a_test.go", `package persistence_test; import "os/exec"`, "starts no program"},
		"test that chooses a port":       {"docs/a_test.go", `package docs_test; import "` + own + `internal/freeport"`, "starts no program"},
		"test that starts a store":       {"docs/a_test.go", `package docs_test; import "` + own + `internal/storetest"`, "starts no program"},
		"test that opens a port":         {"gcra/a_test.go", `package gcra_test; import "net"; var l, _ = net.Listen("tcp", ":0")`, "a_test.go calls net.Listen"},
		"test that opens a port by help": {"docs/a_test.go", `package docs_test; import "` + own + `internal/inproc"; var s = inproc.Start(nil, 0)`, "calls inproc.Start"},
		"test of sockets":                {"transport/a_test.go", `package transport_test; import "net"; var l, _ = net.Listen("tcp", ":0")`, ""},
		"test of real programs":          {"docs/a_test.go", "//go:build real && unix\npackage docs_test; import \"os/exec\"", ""},
		"test of real programs or not":   {"docs/a_linux_test.go", "//go:build real || linux\n\npackage docs_test; import \"os/exec\"", "starts no program"},
		"test in a bubble of its own":    {"docs/a_test.go", `package docs_test; import "testing/synctest"; var s = synctest.Test`, "internal/bubble.Test"},
		"test of simulated programs":     {"docs/a_test.go", `package docs_test; import "` + own + `internal/inproc"; var s = inproc.Bubble`, ""},

		"group with what a command is":   {"commands/hashes/a.go", `package hashes; import "` + own + `command"`, ""},
		"group with what groups share":   {"commands/hashes/a.go", `package hashes; import "` + own + `commands/internal/elements"`, ""},
		"group that knows another":       {"commands/hashes/a.go", `package hashes; import "` + own + `commands/sets"`, "never import each other"},
		"group that knows the list":      {"commands/hashes/a.go", `package hashes; import "` + own + `commands"`, "imports command"},
		"group that knows sessions":      {"commands/limiters/a.go", `package limiters; import "` + own + `session"`, "imports command"},
		"group that knows the store":     {"commands/keys/a.go", `package keys; import "` + own + `keyspace"`, "in command"},
		"group in the test of another":   {"commands/hashes/a_test.go", `package hashes_test; import "` + own + `commands/sets"`, ""},
		"what groups share knowing one":  {"commands/internal/elements/a.go", `package elements; import "` + own + `commands/hashes"`, "nor the packages that groups share may import one"},
		"neither group nor shared":       {"commands/novelty/a.go", `package novelty; import "` + own + `limit"`, "no place in the import direction"},
		"list of all groups":             {"commands/a.go", `package commands; import "` + own + `commands/limiters"`, ""},
		"session with what a command is": {"session/a.go", `package session; import "` + own + `command"`, ""},
		"session that knows a group":     {"session/a.go", `package session; import "` + own + `commands/limiters"`, "neither sessions nor"},
		"session that knows the list":    {"session/a.go", `package session; import "` + own + `commands"`, "and no command"},
		"transport that knows a group":   {"transport/a.go", `package transport; import "` + own + `commands/limiters"`, "moves bytes"},

		"redcon at its place":       {"resp/a.go", `package resp; import "github.com/tidwall/redcon"`, ""},
		"redcon elsewhere":          {"server/a.go", `package server; import "github.com/tidwall/redcon"`, "frame guard"},
		"redcon in a test":          {"server/a_test.go", `package server_test; import "github.com/tidwall/redcon"`, "frame guard"},
		"client in the migration":   {"cmd/cellserver/import.go", `package main; import "github.com/redis/go-redis/v9"`, ""},
		"client in the server":      {"commands/a.go", `package commands; import "github.com/redis/go-redis/v9"`, "the server is no client"},
		"assertions in a test":      {"gcra/a_test.go", `package gcra_test; import "github.com/stretchr/testify/require"`, ""},
		"assertions in production":  {"gcra/a.go", `package gcra; import "github.com/stretchr/testify/require"`, "no place in the binary"},
		"assertions in test double": {"internal/faultfs/a.go", `package faultfs; import "github.com/stretchr/testify/require"`, ""},

		"clock in the store's clock":     {"keyspace/clock_linux.go", `package keyspace; import "time"; var t = time.Now()`, ""},
		"clock in the store":             {"keyspace/shard.go", `package keyspace; import "time"; var t = time.Now()`, "keyspace calls time.Now"},
		"clock under another name":       {"server/a.go", `package server; import clock "time"; var t = clock.Since`, "server calls time.Since"},
		"clock as a value":               {"commands/a.go", `package commands; import "time"; var now = time.Now`, "commands calls time.Now"},
		"clock in a test":                {"server/a_test.go", `package server_test; import "time"; var t = time.Now()`, ""},
		"clock at the edge":              {"transport/a.go", `package transport; import "time"; var t = time.Now()`, ""},
		"clock on another platform":      {"commands/a_windows.go", `package commands; import "time"; var t = time.Now()`, "commands calls time.Now"},
		"Now of another package":         {"server/a.go", `package server; import "time"; var _ = time.Second; var t = clock.Now()`, ""},
		"file of an option":              {"config/a.go", `package config; import "os"; var read = os.ReadFile`, "read it with optionfile"},
		"certificate of an option":       {"server/a.go", `package server; import "crypto/tls"; var load = tls.LoadX509KeyPair`, "read it with optionfile"},
		"file in a test":                 {"config/a_test.go", `package config_test; import "os"; var read = os.ReadFile`, ""},
		"file of the data directory":     {"persistence/osfs.go", `package persistence; import "os"; var open = os.Open`, ""},
		"what a package manager brought": {"compat_test/node_modules/a.go", `package gcra; import "github.com/tidwall/redcon"`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			violations, err := architecture.Check(fstest.MapFS{tt.file: {Data: []byte(tt.source)}})
			require.NoError(t, err)
			if tt.want == "" {
				require.Empty(t, violations)
				return
			}
			require.Len(t, violations, 1)
			require.Contains(t, violations[0].String(), tt.want)
			require.Contains(t, violations[0].String(), tt.file+":")
		})
	}
}

// TestOtherModulesAreLeftOut: the rules are not for a folder with a go.mod of its own.
func TestOtherModulesAreLeftOut(t *testing.T) {
	tree := fstest.MapFS{
		"bench/go.mod": {Data: []byte("module bench")},
		"bench/a.go":   {Data: []byte(`package bench; import "github.com/tidwall/redcon"`)},
	}
	violations, err := architecture.Check(tree)
	require.NoError(t, err)
	require.Empty(t, violations)
}

// TestTestsOfToolsStartNoProgram checks the tests of the modules in tools, which make test runs.
func TestTestsOfToolsStartNoProgram(t *testing.T) {
	for _, folder := range []string{"bench", "docgen"} {
		violations, err := architecture.CheckTests(os.DirFS(filepath.Join("..", "..", "tools", folder)))
		require.NoError(t, err)
		for _, v := range violations {
			t.Error(folder, v)
		}
	}
	violations, err := architecture.CheckTests(fstest.MapFS{
		"go.mod":         {Data: []byte("module bench")},
		"a.go":           {Data: []byte(`package bench; import "os/exec"`)},
		"a_real_test.go": {Data: []byte("//go:build real\n\npackage bench; import \"os/exec\"")},
		"a_test.go":      {Data: []byte(`package bench; import "os/exec"`)},
	})
	require.NoError(t, err)
	require.Len(t, violations, 1)
	require.Contains(t, violations[0].String(), "a_test.go imports os/exec")
}

// TestUnreadableSource: a file that cannot be parsed is an error, never a pass.
func TestUnreadableSource(t *testing.T) {
	_, err := architecture.Check(fstest.MapFS{"gcra/a.go": {Data: []byte("not Go")}})
	require.ErrorContains(t, err, "gcra/a.go")
}
