package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// programTime is how long one program may take. The Java ones need two seconds on an
// idle machine.
const programTime = 4 * time.Minute

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
			if language != "replies" && len(programs) > 0 {
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

// TestRecipesShowThePrograms holds what is shown to what is run.
func TestRecipesShowThePrograms(t *testing.T) {
	require.Len(t, showsPrograms(t, "recipes.md"), 6)
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

// TestPrograms runs every example against a server whose clock stands still at
// midnight.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("programs in other languages are left to the full test run")
	}
	for _, p := range shownPrograms(t, "recipes.md") {
		t.Run(filepath.Base(p.file), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), programTime)
			defer cancel()
			command := interpreter(t, p.file)
			cmd := exec.CommandContext(ctx, command[0], command[1:]...)
			cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+inproc.Start(t, midnight).Addr().String(), "PYTHONDONTWRITEBYTECODE=1")
			var errors strings.Builder
			cmd.Stderr = &errors
			got, err := cmd.Output()
			require.NoError(t, err, errors.String())
			require.Equal(t, p.prints, string(got))
		})
	}
}

// interpreter returns the command that runs a program with its client library, which
// scripts/ci-setup.sh installs for the tests of real clients.
func interpreter(t *testing.T, file string) []string {
	t.Helper()
	clients := filepath.Join("..", "compat_test", "clients")
	source := filepath.Join("..", file)
	if filepath.Ext(file) == ".py" {
		python := filepath.Join(clients, "python", ".venv", "8", "bin", "python")
		installed(t, python)
		return []string{python, source}
	}
	jars := filepath.Join(clients, "java", "target")
	installed(t, filepath.Join(jars, ".installed"))
	classpath := filepath.Join(jars, "jedis-7", "*") + string(os.PathListSeparator) + filepath.Join(jars, "lib", "*")
	return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", classpath, source}
}

func installed(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); err == nil {
		return
	}
	require.NotEqual(t, "true", os.Getenv("CI"), "%s is missing", file)
	t.Skipf("SKIP: %s is missing: run `make setup`", file)
}
