//go:build real

package docs_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/programs"
)

// programTime is how long one program may take. The Java ones need two seconds on an
// idle machine.
const programTime = 4 * time.Minute

// TestPrograms runs every example of the recipes against a server whose clock stands still at midnight.
func TestPrograms(t *testing.T) {
	runPrograms(t, "recipes.md", func(t *testing.T) net.Addr { return inproc.Start(t, midnight).Addr() })
}

// TestProgramsWithAManualClock runs the example of a test against a server with --clock manual.
func TestProgramsWithAManualClock(t *testing.T) {
	runPrograms(t, "manual-clock.md", func(t *testing.T) net.Addr {
		return inproc.ServeTimed(t, "goroutine", "--clock", "manual").Addr()
	})
}

// runPrograms runs every example of a page, each against a server that start starts.
func runPrograms(t *testing.T, page string, start func(t *testing.T) net.Addr) {
	t.Helper()
	if testing.Short() {
		t.Skip("programs in other languages are left to the full test run")
	}
	for _, p := range shownPrograms(t, page) {
		t.Run(filepath.Base(p.file), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), programTime)
			defer cancel()
			command := interpreter(t, p.file)
			cmd := exec.CommandContext(ctx, command[0], command[1:]...)
			cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+start(t).String(), "PYTHONDONTWRITEBYTECODE=1")
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
	programs.Missing(t, "no %s", file)
}
