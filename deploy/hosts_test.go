//go:build real

package deploy_test

import (
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/cellserver/cellserver/internal/activation"
)

// composed is a server with the options of the compose file.
type composed struct {
	*running
	admin, rls string // addresses
}

// startComposed starts a server with the options that the compose file puts into the environment, and with the files that it
// mounts. Ports and paths are those of the test.
func startComposed(t *testing.T, password string) *composed {
	t.Helper()
	needs(t, "make")
	var compose struct {
		Services struct {
			Cellserver struct {
				Command, Volumes []string
				Environment      map[string]string
			}
		}
	}
	text, err := os.ReadFile("compose/compose.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &compose))
	cmd := exec.Command(program(t), append(compose.Services.Cellserver.Command, "--dir="+t.TempDir())...)
	var mounted []string
	for _, v := range compose.Services.Cellserver.Volumes {
		if from, to, _ := strings.Cut(strings.TrimSuffix(v, ":ro"), ":"); strings.HasPrefix(from, "./") {
			path, err := filepath.Abs(filepath.Join("compose", from))
			require.NoError(t, err)
			mounted = append(mounted, to, path)
		}
	}
	sockets := map[string]*activation.Socket{}
	here := strings.NewReplacer(mounted...)
	for name, value := range compose.Services.Cellserver.Environment {
		option := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "CELLSERVER_")), "_", "-")
		if strings.HasSuffix(option, "-port") {
			sockets[option] = activation.Open(t, option)
			value = sockets[option].Port()
		}
		if option != "requirepass" {
			cmd.Env = append(cmd.Env, name+"="+here.Replace(value))
		}
	}
	c := &composed{admin: sockets["admin-port"].Addr, rls: sockets["rls-port"].Addr}
	c.running = startWith(t, cmd, password, slices.Collect(maps.Values(sockets))...)
	return c
}

// TestComposeNamesItsServerToItself: the server of the compose file answers Prometheus, which
// asks by the name of the service, and the page of this machine. It answers no other name.
func TestComposeNamesItsServerToItself(t *testing.T) {
	prometheus, err := os.ReadFile("compose/prometheus.yml")
	require.NoError(t, err)
	target := regexp.MustCompile(`targets: \["([^"]+)"\]`).FindSubmatch(prometheus)
	require.NotNil(t, target)
	admin := startComposed(t, "secret").admin
	get := func(host, path, password string) int {
		r, err := http.NewRequest(http.MethodGet, "http://"+admin+path, nil)
		require.NoError(t, err)
		if r.Host = host; password != "" {
			r.SetBasicAuth("default", password)
		}
		reply, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		return reply.StatusCode
	}
	require.Equal(t, http.StatusOK, get(string(target[1]), "/metrics", ""))
	require.Equal(t, http.StatusOK, get("localhost:9379", "/", "secret"))
	require.Equal(t, http.StatusUnauthorized, get("localhost:9379", "/", ""))
	require.Equal(t, http.StatusForbidden, get("limits.example.org", "/metrics", ""))
	require.Equal(t, http.StatusForbidden, get("limits.example.org", "/", "secret"))
}
