package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestLimitsOfLimitador asks by gRPC and over HTTP for decisions of a limits file.
func TestLimitsOfLimitador(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		file := filepath.Join(t.TempDir(), "limits.yaml")
		require.NoError(t, os.WriteFile(file, []byte("- {namespace: shop, name: user, max_value: 3, seconds: 60, conditions: [], variables: ['descriptors[0].user']}\n"), 0o600))
		n := w.Start("--rls-port", "8081", "--http-port", "8080", "--limitador-limits", file)
		c, s, web := n.Dial(), calls(t, w, n, insecure.NewCredentials()), w.HTTP(n.Host)
		const request = `domain: "shop" descriptors { entries { key: "user" value: "ada" } }`
		answers(t, s, request, `overall_code: 1`)
		require.Contains(t, c.Do("RL.USE", "lim.shop.user", "ada", "PEEK"), "*5\r\n:0\r\n:3\r\n:2\r\n")
		const body = `{"namespace":"shop","values":{"user":"ada"},"delta":1,"response_headers":"DRAFT_VERSION_03"}`
		got := asks(t, web, n, "POST", "/check_and_report", body, "", "")
		require.Equal(t, 200, got.status)
		require.Equal(t, []string{"1"}, got.header["X-Ratelimit-Remaining"], got.header)
		require.Equal(t, 200, asks(t, web, n, "POST", "/check", body, "", "").status)
		require.Equal(t, 200, asks(t, web, n, "POST", "/report", body, "", "").status)
		require.Equal(t, 429, asks(t, web, n, "POST", "/check", body, "", "").status)
		answers(t, s, request, `overall_code: 2`)
		require.Equal(t, 200, asks(t, web, n, "POST", "/report", body, "", "").status)
		require.Equal(t, 400, asks(t, web, n, "POST", "/check", `{}`, "", "").status)
		require.Equal(t, "+OK\r\n", c.Do("RL.EXEMPT", "lim.shop.user", "ada", "EX", "60"))
		require.Equal(t, 200, asks(t, web, n, "POST", "/check_and_report", body, "", "").status)
		require.Equal(t, 200, asks(t, web, n, "GET", "/healthcheck", "", "", "").status, "there are no rules of rls-config")
		require.JSONEq(t, `[{"id":null,"namespace":"shop","max_value":3,"seconds":60,"name":"user","conditions":[],"variables":["descriptors[0].user"]}]`,
			asks(t, web, n, "GET", "/limits/shop", "", "", "").body)
		require.Contains(t, c.Do("INFO", "ratelimit"), "limitador_limits_ok:1\r\nlimitador_limits_age_seconds:0\r\nlimitador_limits:1\r\nlimitador_limits_fault:\r\n")
		require.NoError(t, os.WriteFile(file, []byte("- {}\n"), 0o600))
		require.Contains(t, c.Do("RL.POLICY", "RELOAD"), "limits.yaml:1: namespace is missing")
		require.Contains(t, c.Do("INFO", "ratelimit"), "limitador_limits_ok:0\r\n")
		require.Contains(t, c.Do("RL.USE", "lim.shop.user", "bob", "PEEK"), "*5\r\n:0\r\n:3\r\n", "the limits before stay")
		answers(t, s, `domain: "other" descriptors { entries { key: "user" } }`, `overall_code: 1`)
	})
}
