//go:build real

package compat_test

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/compat_test/clients/process"
)

// TestGoPackage builds the program in the README of clients/go in an empty module, which has that of the package in the
// place of a published version, and runs it against a server until it denies a request.
func TestGoPackage(t *testing.T) {
	if testing.Short() {
		t.Skip("the packages for callers are left to the full test run")
	}
	t.Run("packed", testGoPackage)
}

func testGoPackage(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "clients", "go"))
	require.NoError(t, err)
	dir := t.TempDir()
	file := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		return string(text)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(file("README.md"))
	require.NotNil(t, block)
	module, rest, _ := strings.Cut(file("go.mod"), "\n")
	path := strings.TrimPrefix(module, "module ")
	mod := "module example\n" + rest + "\nrequire " + path + " v0.0.0\nreplace " + path + " => " + root + "\n"
	for name, text := range map[string]string{"main.go": block[1], "go.mod": mod, "go.sum": file("go.sum")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-buildvcs=false", "-o", "example", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	command, err := process.Command("..", t.TempDir())
	require.NoError(t, err)
	server, err := process.Start(command, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
	t.Cleanup(func() { _ = client.Close() })
	require.NoError(t, client.Do(t.Context(), "RL.POLICY", "SET", "api", "LIMITS", "TB", "2", "1", "1h").Err())

	base := "http://" + startExample(t, filepath.Join(dir, "example"), "CELLSERVER_URL=redis://"+server.Addr)
	var last *http.Response
	// Calls that the server does not answer in time pass, so more than two may pass on a slow machine.
	for range 100 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, nil)
		require.NoError(t, err)
		last, err = http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, last.Body.Close())
		if last.StatusCode != http.StatusOK {
			break
		}
	}
	require.Equal(t, http.StatusTooManyRequests, last.StatusCode)
	require.Equal(t, `"api";q=2`, last.Header.Get("RateLimit-Policy"))
	require.NotEmpty(t, last.Header.Get("Retry-After"))
}

// startExample starts a program that listens on LISTEN, and returns the address that it logs.
func startExample(t *testing.T, program string, env ...string) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	example := exec.CommandContext(ctx, program)
	example.Env = append(os.Environ(), append(env, "LISTEN=127.0.0.1:0")...)
	log, err := example.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, example.Start())
	t.Cleanup(func() {
		_ = example.Process.Kill()
		_ = example.Wait()
	})
	lines := bufio.NewScanner(log)
	require.True(t, lines.Scan(), "the program has logged nothing")
	_, addr, found := strings.Cut(lines.Text(), "listening on ")
	require.True(t, found, "%s", lines.Text())
	go func() { // the program must be able to log on
		for lines.Scan() {
		}
	}()
	return addr
}
