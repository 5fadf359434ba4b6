//go:build real

package deploy_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/activation"
)

// TestComposeNamesItsServerToItself: the server of the compose file answers Prometheus, which
// asks by the name of the service, and the page of this machine. It answers no other name.
func TestComposeNamesItsServerToItself(t *testing.T) {
	needs(t, "make")
	compose, err := os.ReadFile("compose/compose.yaml")
	require.NoError(t, err)
	prometheus, err := os.ReadFile("compose/prometheus.yml")
	require.NoError(t, err)
	target := regexp.MustCompile(`targets: \["([^"]+)"\]`).FindSubmatch(prometheus)
	require.NotNil(t, target)
	rules, err := filepath.Abs("compose/rules")
	require.NoError(t, err)
	admin, web := activation.Open(t, "admin-port"), activation.Open(t, "http-port")
	cmd := exec.Command(program(t), "--dir="+t.TempDir(), "--bind=127.0.0.1", "--admin-port="+admin.Port(), "--admin-bind=127.0.0.1",
		"--http-port="+web.Port(), "--rls-config="+rules)
	for _, o := range optionInEnvironment.FindAllStringSubmatch(string(compose), -1) {
		if o[1] != "PASSWORD" && o[1] != "REQUIREPASS" {
			cmd.Env = append(cmd.Env, "CELLSERVER_"+o[1]+"="+o[3])
		}
	}
	startWith(t, cmd, "secret", admin, web)
	get := func(host, path, password string) int {
		r, err := http.NewRequest(http.MethodGet, "http://"+admin.Addr+path, nil)
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
