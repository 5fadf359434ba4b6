package envoyenv_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/config/envoyenv"
)

// values returns the options that follow from environ.
func values(t *testing.T, environ ...string) map[string]string {
	t.Helper()
	presets, _, err := envoyenv.Translate(environ)
	require.NoError(t, err)
	all := make(map[string]string)
	for _, p := range presets {
		require.NotContains(t, all, p.Option, "an option has one row")
		all[p.Option] = p.Value
	}
	return all
}

func TestDefaultsAreThoseOfRatelimit(t *testing.T) {
	require.Equal(t, map[string]string{
		"http-port": "8080", "http-bind": "0.0.0.0", "rls-port": "8081", "rls-bind": "0.0.0.0", "rls-max-connection-age": "86400",
		"rls-config": "/srv/runtime_data/current/config", "rls-config-required": "yes", "rls-health-needs-rules": "no", "rls-merge-domains": "no", "rls-charge": "always",
		"rls-shadow": "no", "rls-quota": "no", "rls-metadata": "no", "rls-headers": "none", "metrics-near-limit": "80",
		"rls-metrics": "ratelimit", "loglevel": "warning", "rls-tls": "no", "port": "0", "protected-mode": "no",
	}, values(t))
}

func TestVariablesBecomeOptions(t *testing.T) {
	for _, c := range []struct {
		environ string // separated by spaces
		want    string // options and their values; an option without a value must not be there
	}{
		{"PORT=9080 HOST=127.0.0.1", "http-port=9080 http-bind=127.0.0.1"},
		{"HOST= GRPC_HOST=::", "http-bind=*|-::* rls-bind=*|-::*"},
		{"GRPC_PORT=0x1f91", "rls-port=8081"},
		{"GRPC_MAX_CONNECTION_AGE=90m", "rls-max-connection-age=5400"},
		{"GRPC_MAX_CONNECTION_AGE=1500ms", "rls-max-connection-age=2"},
		{"GRPC_MAX_CONNECTION_AGE=0", "rls-max-connection-age=0"},
		{"RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit", "rls-config=/data/ratelimit/config"},
		{"RUNTIME_ROOT=/data/ RUNTIME_APPDIRECTORY=rules", "rls-config=/data/rules"},
		{"FORCE_START_WITHOUT_INITIAL_CONFIG=true", "rls-config-required=no"},
		{"FORCE_START_WITHOUT_INITIAL_CONFIG=0 CONFIG_TYPE=FILE", "rls-config-required=yes"},
		{"CONFIG_TYPE=GRPC_XDS_SOTW", "rls-config-required=no"},
		{"MERGE_DOMAIN_CONFIG=t SHADOW_MODE=1 QUOTA_MODE=TRUE RESPONSE_DYNAMIC_METADATA=T", "rls-merge-domains=yes rls-shadow=yes rls-quota=yes rls-metadata=yes"},
		{"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true", "rls-charge=together"},
		{"LIMIT_RESPONSE_HEADERS_ENABLED=true", "rls-headers=RateLimit-Limit|RateLimit-Remaining|RateLimit-Reset"},
		{"LIMIT_RESPONSE_HEADERS_ENABLED=true LIMIT_RESET_HEADER=X-Reset", "rls-headers=RateLimit-Limit|RateLimit-Remaining|X-Reset"},
		{"LIMIT_RESET_HEADER=X-Reset", "rls-headers=none"},
		{"NEAR_LIMIT_RATIO=0.855", "metrics-near-limit=86"},
		{"NEAR_LIMIT_RATIO=1", "metrics-near-limit=99"},
		{"NEAR_LIMIT_RATIO=0", "metrics-near-limit=1"},
		{"DISABLE_STATS=true", "rls-metrics=none"},
		{"DISABLE_STATS=0 USE_STATSD=false", "rls-metrics=ratelimit"},
		{"LOG_LEVEL=info", "loglevel=notice"},
		{"LOG_LEVEL=Trace", "loglevel=debug"},
		{"GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=/c GRPC_SERVER_TLS_KEY=/k", "rls-tls=yes tls-cert-file=/c tls-key-file=/k tls-auth-clients=no tls-ca-cert-file"},
		{"GRPC_SERVER_USE_TLS=true GRPC_CLIENT_TLS_CACERT=/ca", "rls-tls=yes tls-ca-cert-file=/ca tls-auth-clients=yes tls-cert-file"},
		{"GRPC_SERVER_TLS_CERT=/c GRPC_CLIENT_TLS_CACERT=/ca GRPC_CLIENT_TLS_SAN=x", "rls-tls=no tls-cert-file tls-ca-cert-file tls-auth-clients"},
	} {
		t.Run(c.environ, func(t *testing.T) {
			got := values(t, strings.Split(c.environ, " ")...)
			for _, option := range strings.Fields(c.want) {
				name, value, there := strings.Cut(option, "=")
				if v, found := got[name]; found != there || v != strings.ReplaceAll(value, "|", " ") {
					require.Fail(t, name, "got %q (there: %v), want %q", v, found, value)
				}
			}
		})
	}
}

func TestFaultsNameTheVariable(t *testing.T) {
	for environ, want := range map[string]string{
		"PORT=http":                                   `environment variable PORT: "http" is not an integer`,
		"PORT=":                                       `environment variable PORT: "" is not an integer`,
		"GRPC_MAX_CONNECTION_AGE=24":                  `environment variable GRPC_MAX_CONNECTION_AGE: "24" is not a duration such as 24h`,
		"SHADOW_MODE=yes":                             `environment variable SHADOW_MODE: "yes" is neither true nor false`,
		"NEAR_LIMIT_RATIO=NaN":                        `environment variable NEAR_LIMIT_RATIO: "NaN" is not a number from 0 to 1`,
		"NEAR_LIMIT_RATIO=1.1":                        `environment variable NEAR_LIMIT_RATIO: "1.1" is not a number from 0 to 1`,
		"LOG_LEVEL=loud":                              `environment variable LOG_LEVEL: "loud" is not a level: panic, fatal, error, warn, info, debug or trace`,
		"CONFIG_TYPE=file":                            `environment variable CONFIG_TYPE: "file" is none of FILE, GRPC_XDS_SOTW`,
		"GRPC_UDS=/tmp/s":                             `environment variable GRPC_UDS: rls-port is a TCP port: gRPC on a Unix socket is not supported`,
		"GRPC_SERVER_USE_TLS=maybe":                   `environment variable GRPC_SERVER_USE_TLS: "maybe" is neither true nor false`,
		"SHADOW_MODE=no QUOTA_MODE=nope":              "environment variable SHADOW_MODE: \"no\" is neither true nor false\nenvironment variable QUOTA_MODE: \"nope\" is neither true nor false",
		"GRPC_SERVER_USE_TLS=1 GRPC_CLIENT_TLS_SAN=x": `environment variable GRPC_CLIENT_TLS_SAN: the name of a client is not checked so: use tls-auth-clients-user, and users with permissions`,
		"LIMIT_RESPONSE_HEADERS_ENABLED=1 LIMIT_RESET_HEADER=":           `environment variable LIMIT_RESET_HEADER: "" is not the name of a header field`,
		"FORCE_START_WITHOUT_INITIAL_CONFIG=false CONFIG_TYPE=GRPC_XDS_": `environment variable CONFIG_TYPE: "GRPC_XDS_" is none of FILE, GRPC_XDS_SOTW`,
	} {
		presets, idle, err := envoyenv.Translate(strings.Split(environ, " "))
		require.EqualError(t, err, want, environ)
		require.Nil(t, presets)
		require.Nil(t, idle)
	}
}

// TestIdleVariablesAreNamed: a variable that has no effect is accepted with any value.
func TestIdleVariablesAreNamed(t *testing.T) {
	presets, idle, err := envoyenv.Translate([]string{"REDIS_URL=:::", "REDIS_AUTH=secret", "USE_STATSD=perhaps", "CONFIG_GRPC_XDS_NODE_ID=x", "PATH=/bin", "BACKEND_TYPE=memcache"})
	require.NoError(t, err)
	require.NotEmpty(t, presets)
	require.Equal(t, []string{"BACKEND_TYPE", "REDIS_AUTH", "REDIS_URL", "USE_STATSD"}, idle)
}

// TestEachVariableHasOnePlace: it has an effect, has none, or is one of the xDS program.
func TestEachVariableHasOnePlace(t *testing.T) {
	place := make(map[string]string)
	put := func(name, where string) {
		if was, found := place[name]; found {
			require.Equal(t, was, where, name)
		}
		place[name] = where
	}
	for _, r := range envoyenv.Rows() {
		for _, v := range r.Variables {
			put(v.Name, "row")
		}
	}
	for _, g := range envoyenv.Idle() {
		for _, name := range g.Names {
			require.NotContains(t, place, name)
			put(name, "idle")
		}
	}
	for _, v := range envoyenv.XDS() {
		require.NotContains(t, place, v.Name)
		put(v.Name, "xds")
	}
	require.Len(t, place, 114, "the variables of ratelimit's settings.go of 2026-07-05")
}

// TestPresetsAreOptions: the defaults load, the file, variables of this server and flags have precedence over them,
// and a reload keeps them.
func TestPresetsAreOptions(t *testing.T) {
	presets, _, err := envoyenv.Translate([]string{"GRPC_PORT=9081", "HOST=127.0.0.1"})
	require.NoError(t, err)
	c, err := config.LoadOver(presets, []string{"--http-port", "9999"}, []string{"CELLSERVER_RLS_BIND=::1"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"9081", "::1", "9999", "127.0.0.1", "0"}, []string{
		c.Value("rls-port"), c.Value("rls-bind"), c.Value("http-port"), c.Value("http-bind"), c.Value("port"),
	})

	presets, _, err = envoyenv.Translate([]string{"PORT=99999"})
	require.NoError(t, err)
	_, err = config.LoadOver(presets, nil, nil, nil)
	require.EqualError(t, err, `environment variable PORT: option "http-port": argument must be between 0 and 65535 inclusive`)
}
