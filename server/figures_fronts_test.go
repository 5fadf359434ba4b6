package server_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
)

// TestOperatorsSeeRulesThatAreNotLoaded: the figures, INFO and the checks of the report tell of a fault and where it is,
// until the files have none.
func TestOperatorsSeeRulesThatAreNotLoaded(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		dir := t.TempDir()
		path := filepath.Join(dir, "a.yaml")
		write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
		write(fooTwo)
		n := w.Start("--rls-config", dir)
		c := n.Dial()
		figure := func(name string) float64 {
			v, is := n.Server.Engine().Figures.View().Value(name)
			require.True(t, is, name)
			return v
		}
		check := func(ok, text string) {
			t.Helper()
			require.Contains(t, c.Do("RL.REPORT", "OVERVIEW"), `{"id":"rules","ok":`+ok+`,"value":`+map[string]string{"true": "0", "false": "1"}[ok]+
				`,"limit":0,"name":"Rules are loaded","text":"`+text+`","bound":"no fault"}`)
		}
		time.Sleep(90*time.Second + 500*time.Millisecond) // the server looks at the files at other instants than this test changes them
		require.InDelta(t, 1, figure("rls_config_ok"), 0)
		require.InDelta(t, 1, figure("rls_rules"), 0)
		require.LessOrEqual(t, figure("rls_config_age_seconds"), 1.0)
		require.Contains(t, c.Do("INFO", "ratelimit"), "rls_config_ok:1\r\nrls_config_age_seconds:0\r\nrls_rules:1\r\nrls_config_fault:\r\n")
		check("true", "1 in force")

		write(fooTwo + "- {key: bar, rate_limit: {unit: x}}\n")
		time.Sleep(90 * time.Second)
		const fault = `:4: the unit "x" does not exist: it is second, minute, hour, day, week, month or year`
		require.InDelta(t, 0, figure("rls_config_ok"), 0)
		require.InDelta(t, 90, figure("rls_config_age_seconds"), 1)
		require.Contains(t, c.Do("INFO", "ratelimit"), "rls_config_ok:0\r\nrls_config_age_seconds:90\r\nrls_rules:1\r\nrls_config_fault:"+path+fault+"\r\n")
		check("false", path+`:4: the unit \"x\" does not exist: it is second, minute, hour, day, week, month or year`)
		require.Contains(t, c.Do("RL.REPORT", "OVERVIEW"), `“Rules are loaded” fails: `+path+`:4: `)

		write(fooTwo + "- {key: bar, rate_limit: {unit: x}}\n- {key: bat, rate_limit: {unit: y}}\n- {key: baz, rate_limit: {unit: z}}\n")
		require.Contains(t, c.Do("RL.POLICY", "RELOAD"), "-ERR")
		require.Contains(t, c.Do("INFO", "ratelimit"), fault+", and 2 other faults\r\n")
		require.NoError(t, os.RemoveAll(dir))
		require.Contains(t, c.Do("RL.POLICY", "RELOAD"), "-ERR")
		require.Contains(t, c.Do("INFO", "ratelimit"), "no such file or directory\r\n")
		require.NoError(t, os.Mkdir(dir, 0o700))
		write(fooTwo)
		time.Sleep(2 * time.Second)
		require.InDelta(t, 1, figure("rls_config_ok"), 0)
		require.LessOrEqual(t, figure("rls_config_age_seconds"), 1.0)
		check("true", "1 in force")
	})
}

// TestNothingIsSeenOfFrontsThatAreNotThere checks a server without http-port and rls-config.
func TestNothingIsSeenOfFrontsThatAreNotThere(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := w.Start()
		c := n.Dial()
		time.Sleep(2 * time.Second)
		require.NotContains(t, c.Do("INFO", "everything"), "rls_")
		require.NotContains(t, c.Do("INFO", "everything"), "http_")
		require.NotContains(t, c.Do("RL.REPORT", "OVERVIEW"), `"rules"`)
		for _, name := range []string{"rls_config_ok", "rls_config_age_seconds", "rls_rules"} {
			_, is := n.Server.Engine().Figures.View().Value(name)
			require.False(t, is, name)
		}
		_, is := n.Server.Engine().Figures.View().Value("http_requests_total", "200")
		require.False(t, is)
	})
}

// TestRequestsOverHTTPAreSeen checks the figure of the statuses.
func TestRequestsOverHTTPAreSeen(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		n := onHTTP(w)
		c, web := n.Dial(), w.HTTP(n.Host)
		c.Set("RL.POLICY SET api LIMITS SW 1 60 FIXED")
		for _, status := range []int{200, 403} {
			require.Equal(t, status, asks(t, web, n, "GET", "/v1/check/api/key=acme&deny=403", "", "", "").status)
		}
		for code, want := range map[string]float64{"200": 1, "429": 1, "403": 0, "other": 0} {
			is, _ := n.Server.Engine().Figures.View().Value("http_requests_total", code)
			require.InDelta(t, want, is, 0, code)
		}
		require.Contains(t, c.Do("INFO", "stats"), "http_requests_429:1\r\n")
	})
}
