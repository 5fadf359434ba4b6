package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
)

// callingPages are the pages that show calls of CL.THROTTLE.
var callingPages = []string{"../README.md", "calling.md"}

// snippet is a block of such a page.
type snippet struct {
	title    string // the heading above it
	language string // "" for shell input
	code     string
}

// inlineCall is a call that stands in a line of text.
var inlineCall = regexp.MustCompile("^With (node-redis): `(.*)`\\.\n$")

// readSnippets reads all blocks of the pages, and the call in a line of text.
func readSnippets(t *testing.T) (all []snippet) {
	t.Helper()
	for _, name := range callingPages {
		page, err := os.ReadFile(name)
		require.NoError(t, err)
		all = append(all, pageSnippets(string(page))...)
	}
	return all
}

func pageSnippets(page string) (all []snippet) {
	title, block := "", (*snippet)(nil)
	for line := range strings.Lines(page) {
		inline := inlineCall.FindStringSubmatch(line)
		switch {
		case block != nil && line == "```\n":
			all, block = append(all, *block), nil
		case block != nil:
			block.code += line
		case strings.HasPrefix(line, "```"):
			block = &snippet{title: title, language: strings.TrimSpace(line[3:])}
		case strings.HasPrefix(line, "#"):
			title = strings.TrimSpace(strings.TrimLeft(line, "#"))
		case inline != nil:
			all = append(all, snippet{title: inline[1], language: "js", code: inline[2]})
		}
	}
	return all
}

// redisCLI shows a reply as redis-cli does: a line for each integer.
var redisCLI = regexp.MustCompile(`^\d+\) \(integer\) (-?\d+)`)

// TestShellCommands plays what the pages show at a shell: calls of redis-cli with their
// replies, targets of make, and options.
func TestShellCommands(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	var replies []string
	calls, shown := 0, 0
	for _, s := range readSnippets(t) {
		if s.language != "" {
			continue
		}
		run := newExampleRun(t)
		last, integers := "", []string(nil)
		for line := range strings.Lines(s.code) {
			words, _, _ := strings.Cut(line, "  #")
			words = strings.TrimSpace(words)
			command, is := strings.CutPrefix(words, "$ redis-cli ")
			integer := redisCLI.FindStringSubmatch(line)
			switch {
			case is:
				last = run.client(t, "cli").do(t, line, command)
				replies, calls = append(replies, last), calls+1
			case integer != nil:
				integers = append(integers, integer[1])
				shown++
			case strings.HasPrefix(words, "make "):
				require.Contains(t, string(makefile), "\n"+words[len("make "):]+":", words)
			case strings.HasPrefix(words, "$ cellserver "):
				checkOptions(t, words)
			default:
				require.Fail(t, "nothing plays this line", line)
			}
		}
		if len(integers) > 0 {
			require.Equal(t, strings.Join(integers, " "), last, "the reply that is shown")
		}
	}
	require.Equal(t, 7, calls)
	require.Equal(t, 5, shown)
	require.Equal(t, []string{
		"0 16 15 -1 2",                  // what the page begins with
		"0 16 15 -1 2", "0 16 10 -1 12", // take one; take five, or none
		"0 16 10 -1 12", "0 16 15 -1 2", // only look; give five back
		"2000", "1",
	}, replies)
}

// checkOptions wants every option of a line to be one of the server's, and a word before
// them to be one of the tools.
func checkOptions(t *testing.T, line string) {
	t.Helper()
	known := make(map[string]bool)
	for _, p := range config.Default().Get(func(string) bool { return true }) {
		known[p[0]] = true
	}
	for _, word := range strings.Fields(line)[2:] {
		if name, is := strings.CutPrefix(word, "--"); is {
			require.True(t, known[name], "%s: %s", line, word)
		}
	}
}
