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

// Engine is a program that is run as a server.
type Engine struct {
	// Name is redis-server, valkey-server or cellserver. The scheme of store URLs follows from it.
	Name    string
	program string
	// watcher is the program of the sentinels, or "" if it is the program of the engine.
	watcher string
}

// Cellserver builds the server of this module and returns it as an engine. The program of watcher
// runs the sentinels that watch it.
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

// Watched returns the engine e with the program of watcher for its sentinels.
func (e Engine) Watched(watcher Engine) Engine {
	e.watcher = watcher.program
	return e
}

// Redis returns the engine redis-server, which must be on the path. If it is missing, the test is
// skipped or, in continuous integration, fails.
func Redis(t testing.TB) Engine {
	t.Helper()
	return Engine{Name: "redis-server", program: programs.Find(t, "redis-server")}
}

// Valkey returns the engine valkey-server, which is on the path or built in the checkout that
// VALKEY_DIR names. If it is missing, the test is skipped or, in continuous integration, fails.
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

// Best returns Valkey if there is one, otherwise Redis. It is for tests that need only one engine.
func Best(t testing.TB) Engine {
	t.Helper()
	if _, err := exec.LookPath("valkey-server"); err == nil || os.Getenv("VALKEY_DIR") != "" || programs.Required() {
		return Valkey(t)
	}
	return Redis(t)
}

// Each runs f as a subtest with Redis and as another one with Valkey.
func Each(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { f(t, Redis(t)) })
	t.Run("valkey", func(t *testing.T) { f(t, Valkey(t)) })
}
