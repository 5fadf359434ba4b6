package storetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/programs"
)

// Engine is a program that keeps states.
type Engine struct {
	// Name is redis-server, valkey-server or cellserver.
	Name    string
	program string
	// watcher is the program of its sentinels, "" for the program itself.
	watcher string
}

// Cellserver is the server of this module, which it builds. Sentinels that watch it are those of
// watcher.
func Cellserver(t testing.TB, watcher Engine) Engine {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	require.True(t, ok)
	program := filepath.Join(t.TempDir(), "cellserver")
	build := exec.Command("go", "build", "-o", program, "./cmd/cellserver")
	build.Dir = filepath.Join(filepath.Dir(file), "..", "..")
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return Engine{Name: "cellserver", program: program, watcher: watcher.program}
}

// Watched is the same engine with sentinels that are those of watcher.
func (e Engine) Watched(watcher Engine) Engine {
	e.watcher = watcher.program
	return e
}

// Redis is the redis-server on the path. Without one the test is skipped; in continuous
// integration it fails.
func Redis(t testing.TB) Engine {
	t.Helper()
	return Engine{Name: "redis-server", program: programs.Find(t, "redis-server")}
}

// Valkey is the valkey-server on the path, or the one that was built in the checkout that
// VALKEY_DIR names. Without one the test is skipped; in continuous integration it fails.
func Valkey(t testing.TB) Engine {
	t.Helper()
	if built, err := filepath.Abs(filepath.Join(os.Getenv("VALKEY_DIR"), "src", "valkey-server")); err == nil && os.Getenv("VALKEY_DIR") != "" {
		if _, err := os.Stat(built); err == nil {
			return Engine{Name: "valkey-server", program: built}
		}
	}
	program, err := exec.LookPath("valkey-server")
	if err != nil {
		programs.Missing(t, "no valkey-server, neither on the path nor built in VALKEY_DIR")
	}
	return Engine{Name: "valkey-server", program: program}
}

// Best is Valkey where there is one, else Redis, for tests that need one engine only.
func Best(t testing.TB) Engine {
	t.Helper()
	if _, err := exec.LookPath("valkey-server"); err == nil || os.Getenv("VALKEY_DIR") != "" || programs.Required() {
		return Valkey(t)
	}
	return Redis(t)
}

// Each runs f as a subtest with each engine.
func Each(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { f(t, Redis(t)) })
	t.Run("valkey", func(t *testing.T) { f(t, Valkey(t)) })
}
