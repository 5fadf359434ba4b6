//go:build real

// Package envoy_test runs Envoy with the configuration in this folder, in front of an application. The program is its
// rate limit service, and answers its checks.
package envoy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/examples/demo"
	"github.com/cellserver/cellserver/internal/freeport"
	"github.com/cellserver/cellserver/internal/programs"
	"github.com/cellserver/cellserver/internal/storetest"
)

// root is the folder of the module.
const root = "../.."

// envoyAddr is the address from which Envoy asks for checks. Only this address is a trusted proxy: the clients of the tests have
// 127.0.0.1.
const envoyAddr = "127.0.0.9"

// gateway is an Envoy in front of an application, with a server that it asks.
type gateway struct {
	t      *testing.T
	server *storetest.Node
	client *http.Client
	// limited and checked are the addresses of the listeners of these names, and admin that of the admin interface.
	limited, checked, admin string
}

// change is a text of envoy.yaml and the text in its place.
type change struct{ from, to string }

// patient lets Envoy wait for the decision as long as it takes, so that no request passes because the machine was busy.
var patient = change{"timeout: 0.02s", "timeout: 60s"}

// TestEnvoy runs Envoy with one build of the program.
func TestEnvoy(t *testing.T) {
	if testing.Short() {
		t.Skip("Envoy is left to the full test run")
	}
	program, err := demo.Envoy(root)
	if err != nil {
		programs.Missing(t, "no envoy")
	}
	m := &machine{program, storetest.Cellserver(t, storetest.Engine{})}
	t.Run("Limits", m.testLimits)
	t.Run("HitsAddend", m.testHitsAddend)
	t.Run("HeaderFields", m.testHeaderFields)
	t.Run("CommandsUnderLoad", m.testCommandsUnderLoad)
	t.Run("ServerAway", m.testServerAway)
	t.Run("Timeouts", m.testTimeouts)
	t.Run("Checks", m.testChecks)
	t.Run("ChecksOfHeaderFields", m.testChecksOfHeaderFields)
}

// machine has the programs that the tests start.
type machine struct {
	envoy  string
	server storetest.Engine
}

// start starts the application, the server, and Envoy with a changed envoy.yaml. All windows of ratelimit.yaml are years, so that
// none ends during a test.
func (m *machine) start(t *testing.T, changes ...change) *gateway {
	t.Helper()
	application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Tokens", "250")
		_, _ = io.WriteString(w, "the page\n")
	}))
	t.Cleanup(application.Close)
	g := &gateway{t: t, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	t.Cleanup(g.client.CloseIdleConnections)

	rls, checks := freeport.Choose(), freeport.Choose()
	g.server = m.server.Single(t, storetest.Options{Args: []string{
		"--rls-port", rls, "--rls-config", rules(t), "--http-port", checks, "--http-gateway", "envoy", "--http-trusted-proxies", envoyAddr,
	}})
	ports := map[string]string{
		"9901": freeport.Choose(), "10000": freeport.Choose(), "10001": freeport.Choose(),
		"3000": portOf(t, application.Listener.Addr().String()), "8081": rls, "8080": checks,
	}
	g.limited, g.checked, g.admin = local(ports["10000"]), local(ports["10001"]), local(ports["9901"])
	config, err := demo.EnvoyConfig("envoy.yaml", ports)
	require.NoError(t, err)
	for _, c := range append(changes, change{
		"    - name: checks\n", "    - name: checks\n      upstream_bind_config: {source_address: {address: " + envoyAddr + ", port_value: 0}}\n",
	}) {
		require.Contains(t, config, c.from)
		config = strings.ReplaceAll(config, c.from, c.to)
	}
	g.run(m.envoy, config)
	return g
}

func local(port string) string { return net.JoinHostPort("127.0.0.1", port) }

func portOf(t *testing.T, addr string) string {
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return port
}

// rules writes the rules of the tests and returns the path of their file.
func rules(t *testing.T) string {
	text, err := os.ReadFile("ratelimit.yaml")
	require.NoError(t, err)
	years := strings.NewReplacer("unit: minute", "unit: year", "unit: hour", "unit: year").Replace(string(text))
	file := filepath.Join(t.TempDir(), "ratelimit.yaml")
	require.NoError(t, os.WriteFile(file, []byte(years), 0o600))
	return file
}

// run starts Envoy, and returns when it serves and its health check has found the server.
func (g *gateway) run(program, config string) {
	t := g.t
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	var said strings.Builder // read when Envoy has ended
	cmd := exec.Command(program, demo.EnvoyArguments(file)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		if t.Failed() {
			t.Logf("Envoy said:\n%s", said.String())
		}
	})
	storetest.Await(t, "Envoy is ready", func() error {
		if body := g.ask("http://" + g.admin + "/ready"); body != "LIVE\n" {
			return fmt.Errorf("it is %q", body)
		}
		return nil
	})
	g.awaitHealthy()
}

// awaitHealthy returns when the health check of Envoy says that the server serves.
func (g *gateway) awaitHealthy() {
	g.t.Helper()
	storetest.Await(g.t, "Envoy's health check", func() error {
		if n := g.stat("cluster.rls.membership_healthy"); n != 1 {
			return fmt.Errorf("%d servers are healthy", n)
		}
		return nil
	})
}

// ask returns the body of the answer to a GET, or "" if there is none.
func (g *gateway) ask(url string) string {
	r, err := http.Get(url) //nolint:noctx // the admin interface answers at once
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	return string(body)
}

// stat returns a counter or gauge of Envoy, 0 if Envoy does not have it.
func (g *gateway) stat(name string) int64 {
	g.t.Helper()
	body := g.ask("http://" + g.admin + "/stats?filter=^" + name + "$")
	_, value, _ := strings.Cut(strings.TrimSpace(body), ": ")
	n, _ := strconv.ParseInt(value, 10, 64)
	return n
}

// answer is a response with its body.
type answer struct {
	status int
	header http.Header
	body   string
}

// get sends a request with header fields, which are names and values in turn, to one of the listeners.
func (g *gateway) get(addr, path string, fields ...string) (answer, error) {
	ctx, end := context.WithTimeout(g.t.Context(), storetest.Patience)
	defer end()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(fields); i += 2 {
		q.Header.Add(fields[i], fields[i+1])
	}
	r, err := g.client.Do(q)
	if err != nil {
		return answer{}, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return answer{r.StatusCode, r.Header, string(body)}, err
}

// must does the same as get, and the request must be answered.
func (g *gateway) must(addr, path string, fields ...string) answer {
	g.t.Helper()
	a, err := g.get(addr, path, fields...)
	require.NoError(g.t, err)
	return a
}

// statuses returns the statuses of n requests of a tenant, one after another.
func (g *gateway) statuses(n int, path, tenant string) (all []int) {
	g.t.Helper()
	for range n {
		all = append(all, g.must(g.limited, path, "X-Tenant", tenant).status)
	}
	return all
}

// used returns how much of the first limit of a policy a key has used.
func (g *gateway) used(policy, key string) int64 {
	g.t.Helper()
	reply, ok := g.server.Do("RL.USE", policy, key, 0).([]any)
	require.True(g.t, ok)
	return reply[1].(int64) - reply[2].(int64)
}

// within requires that f returns true before storetest.Patience has passed.
func within(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(storetest.Patience)
	for !f() {
		require.True(t, time.Now().Before(deadline), what)
		time.Sleep(time.Millisecond)
	}
}
