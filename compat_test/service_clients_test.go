//go:build real

package compat_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/storetest"
)

// serviceRules are the rules that the programs of gRPC clients expect. No window ends during a test.
const serviceRules = `domain: rl
descriptors:
  - {key: two, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: hundred, rate_limit: {unit: year, requests_per_unit: 100}}
`

// TestServiceClients calls the rate limit service by the gRPC libraries of other languages. Each program gets a server of its own.
func TestServiceClients(t *testing.T) {
	if testing.Short() {
		t.Skip("real libraries are left to the full test run")
	}
	checks := []string{"answers", "hits", "errors", "thousand-calls", "open-streams", "health-check"}
	clients := []client{
		{
			name: "grpcio", version: "1.85.3", dir: "envoy", command: []string{filepath.Join(".venv", "bin", "python"), "use_grpcio.py"},
			installed: filepath.Join(".venv", ".installed"), inputs: []string{"requirements.txt"}, checks: checks,
		},
		{
			name: "tonic", version: "0.14.9", dir: "rust", command: []string{"./target/debug/tonic"},
			installed: "target/.installed", inputs: []string{"Cargo.toml", "Cargo.lock", "build.rs", "src", "../envoy/rls.proto", "../envoy/health.proto"}, checks: checks,
		},
	}
	rules := filepath.Join(t.TempDir(), "ratelimit.yaml")
	require.NoError(t, os.WriteFile(rules, []byte(serviceRules), 0o600))
	server := storetest.Cellserver(t, storetest.Engine{})
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join("libraries", c.dir)
			needs(t, c.name, dir, c.command[:1], c.installed, c.inputs)
			port := freeport.Choose()
			server.Single(t, storetest.Options{Args: []string{"--rls-port", port, "--rls-config", rules}})
			ctx, cancel := context.WithTimeout(t.Context(), libraryTimeout)
			defer cancel()
			r := report{info: map[string]string{}, failed: map[string]string{}}
			cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "CELL_RLS=127.0.0.1:"+port, "PYTHONDONTWRITEBYTECODE=1")
			cmd.Stdout, cmd.Stderr = &lineWriter{each: r.add}, os.Stderr
			cmd.WaitDelay = 5 * time.Second
			r.judge(t, c, "", cmd.Run())
		})
	}
}
