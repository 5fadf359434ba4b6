package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is an example with what a page says about it.
type program struct {
	file     string
	excerpts []string
	prints   string
}

var programLink = regexp.MustCompile(`^\[examples/\S+\]\(\.\./(examples/\S+)\)$`)

// shownPrograms reads a page: a link to a program stands before its excerpt, and what a
// section's programs print, in a ```text block, behind them.
func shownPrograms(t *testing.T, name string) (programs []*program) {
	t.Helper()
	page, err := os.ReadFile(name)
	require.NoError(t, err)
	block, section, language := "", 0, ""
	for _, line := range strings.SplitAfter(string(page), "\n") {
		bare := strings.TrimSpace(line)
		link := programLink.FindStringSubmatch(bare)
		switch {
		case language != "" && bare != "```":
			block += line
		case language == "text":
			for _, p := range programs[section:] {
				p.prints = block
			}
			section, block, language = len(programs), "", ""
		case language != "":
			if language != "replies" && language != "console" && len(programs) > 0 {
				p := programs[len(programs)-1]
				p.excerpts = append(p.excerpts, block)
			}
			block, language = "", ""
		case strings.HasPrefix(bare, "```"):
			language = bare[3:]
		case link != nil:
			programs = append(programs, &program{file: link[1]})
		}
	}
	return programs
}

// TestRecipesShowThePrograms: the programs on the pages are those that the tests run.
func TestRecipesShowThePrograms(t *testing.T) {
	require.Len(t, showsPrograms(t, "recipes.md"), 6)
	require.Len(t, showsPrograms(t, "manual-clock.md"), 1)
}

// showsPrograms checks that what a page shows of its programs is in them, and returns
// their names.
func showsPrograms(t *testing.T, page string) (files []string) {
	t.Helper()
	for _, p := range shownPrograms(t, page) {
		files = append(files, p.file)
		source, err := os.ReadFile(filepath.Join("..", p.file))
		require.NoError(t, err)
		require.NotEmpty(t, p.excerpts, p.file)
		for _, excerpt := range p.excerpts {
			require.Contains(t, string(source), excerpt, p.file)
		}
	}
	return files
}
