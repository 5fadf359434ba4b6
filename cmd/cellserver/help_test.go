package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
)

// TestHelpExplainsEverything: there is help for each tool and each option, and for a mistyped
// name the nearest one is suggested.
func TestHelpExplainsEverything(t *testing.T) {
	for _, name := range append(slices.Collect(maps.Keys(tools)), serviceTool) {
		require.Contains(t, manual[name], "usage: cellserver "+name)
		for _, args := range [][]string{{"help", name}, {name, "--help"}, {name, "x", "-h"}, {"--help", name}} {
			var out, errs bytes.Buffer
			require.Zero(t, run(args, nil, &out, &errs), "%q", args)
			require.True(t, strings.HasPrefix(out.String(), manual[name]), "clients may have a command of this name, too: %s", &out)
			require.Empty(t, errs.String())
		}
	}
	require.Len(t, manual, len(tools)+1)
	for args, want := range map[[2]string]string{
		{"help", ""}:                          "\n  doctor ADDRESS ",
		{"help", "maxmemory"}:                 "--maxmemory <bytes>\n",
		{"help", "--lua-time-limit"}:          "--busy-reply-threshold <milliseconds>\n",
		{"help", "hash-max-listpack-entries"}: "means nothing here",
		{"help", "include"}:                   "--include <path>\n",
		{"help", "--loadmodule"}:              "--loadmodule <path>\n",
		{"help", "rename-command"}:            "--rename-command <name> <new name>\n",
		{"help", "help"}:                      "\n  doctor ADDRESS ",
		{"help", "version"}:                   "\n  doctor ADDRESS ",
		{"-h", "port"}:                        "--port <number>\n",
		{"help", "cl.throttle"}:               "CL.THROTTLE key max_burst count period [quantity]\n",
		{"help", "config"}:                    "\n\nCONFIG SET parameter value",
		{"help", "CONFIG GET"}:                "CONFIG GET ",
		{"help", "save"}:                      "SAVE\n", // an option and a command
		{"version", ""}:                       "cellserver 0.",
	} {
		var out, errs bytes.Buffer
		given := []string{args[0], args[1]}
		if args[1] == "" {
			given = given[:1]
		}
		require.Zero(t, run(given, nil, &out, &errs), errs.String())
		require.Contains(t, out.String(), want)
	}
	var out, errs bytes.Buffer
	require.Zero(t, run([]string{"help", "config", "get"}, nil, &out, &errs))
	require.Contains(t, out.String(), "CONFIG GET ")
	require.NotContains(t, out.String(), "CONFIG SET")
}

// TestHelpFitsATerminal: the help has every tool and every option, in lines of at most 80 columns.
func TestHelpFitsATerminal(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, help(nil, &out))
	for name := range tools {
		require.Regexp(t, `(?m)^  `+name+` `, out.String())
	}
	for _, o := range config.Describe() {
		require.Contains(t, out.String(), "\n  --"+o.Name+" <")
	}
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), helpWidth, line)
	}
}

// TestMistypedNamesGetTheNearestName: errors for mistyped commands, options of tools and of the
// server contain the wrong argument and the nearest existing name.
func TestMistypedNamesGetTheNearestName(t *testing.T) {
	for want, args := range map[string][]string{
		`cellserver: unknown command "improt", did you mean "import"?`:                              {"improt", "redis://x", "y"},
		`cellserver: unknown command "docter", did you mean "doctor"?`:                              {"docter"},
		`cellserver: "port" is neither a command nor a file, did you mean "--port"?`:                {"port", "6390"},
		`cellserver: "start" is neither a command nor a file`:                                       {"start"},
		"cellserver: reading the configuration: open ":                                              {"no/such.conf"},
		`there is no help for "maxmemry", did you mean "maxmemory"?`:                                {"help", "maxmemry"},
		`there is no help for "CL.THROTLE", did you mean "CL.THROTTLE"?`:                            {"help", "CL.THROTLE"},
		"there is no help for \"foo\"\n":                                                            {"help", "foo"},
		"an address has a scheme: write redis://localhost:6379, or rediss://localhost:6379 for TLS": {"doctor", "localhost:6379"},
		`version takes no argument, but there is "x"`:                                               {"version", "x"},
		`command line: unknown option "prot", did you mean "port"?`:                                 {"--prot", "1"},
		`command line: unknown option "appendonyl", did you mean "appendonly"?`:                     {"--appendonyl", "--port", "1"},
		`command line: "-port" is not a flag, did you mean "--port"?`:                               {"-port", "1"},
		"import: unknown option --dryrun, did you mean \"--dry-run\"?\nusage: cellserver import":    {"import", "redis://x", "y", "--dryrun"},
		`export: invalid value "x" for flag -db`:                                                    {"export", "redis://x", "y", "--db", "x"},
		`doctor: unknown option --sampel, did you mean "--sample"?`:                                 {"doctor", "redis://x", "--sampel", "1"},
		`check-aof: unknown option "--fox", did you mean "--fix"?`:                                  {"check-aof", "dir", "--fox"},
		`dump: unknown option "--all"`:                                                              {"dump", "dir", "--all"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 1, run(args, nil, &out, &errs), "%q", args)
		require.Contains(t, errs.String(), want)
		require.Empty(t, out.String(), "%q", args)
	}
}

// TestToolsSilenceTheClientLibrary: log messages of the client library are not shown.
func TestToolsSilenceTheClientLibrary(t *testing.T) {
	said := &loud{}
	redis.SetLogger(said)
	require.Error(t, importKeys([]string{"redis://127.0.0.1:1", t.TempDir() + "/x"}, io.Discard))
	require.Error(t, doctor([]string{"redis://127.0.0.1:1"}, io.Discard))
	require.Zero(t, said.lines)
}

// loud counts what the library logs.
type loud struct{ lines int }

func (l *loud) Printf(context.Context, string, ...any) { l.lines++ }
