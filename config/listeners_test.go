package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/config"
)

func TestAReachableAdminPortNeedsTLSOrAPassword(t *testing.T) {
	for _, c := range []struct {
		args      string
		passwords bool
		refused   bool
	}{
		{"--admin-port 9121", false, false},
		{"--admin-bind 0.0.0.0", false, false}, // no port
		{"--admin-port 9121 --admin-bind 127.0.0.1 ::1 localhost", false, false},
		{"--admin-port 9121 --admin-bind 0.0.0.0", false, true},
		{"--admin-port 9121 --admin-bind 127.0.0.1 10.0.0.1", false, true},
		{"--admin-port 9121 --admin-bind *", false, true},
		{"--admin-port 9121 --admin-bind -::", false, true},
		{"--admin-port 9121 --admin-bind 0.0.0.0", true, false},
		{"--admin-port 9121 --admin-bind 0.0.0.0 --admin-tls yes", false, false},
	} {
		loaded, err := config.Load(strings.Fields(c.args), nil)
		require.NoError(t, err)
		require.Equal(t, c.refused, loaded.RefuseReachableAdmin(c.passwords) != nil, "%+v", c)
	}
}

// TestKubernetesVariablesOfAnAdminServiceAreNoOptions: a service named cellserver-admin sets
// variables with the prefix of the options.
func TestKubernetesVariablesOfAnAdminServiceAreNoOptions(t *testing.T) {
	c, err := config.Load(nil, []string{
		"CELLSERVER_ADMIN_PORT=tcp://10.0.0.2:9121", "CELLSERVER_ADMIN_SERVICE_HOST=10.0.0.2", "CELLSERVER_ADMIN_SERVICE_PORT=9121",
		"CELLSERVER_ADMIN_SERVICE_PORT_HTTP=9121", "CELLSERVER_ADMIN_PORT_9121_TCP=tcp://10.0.0.2:9121", "CELLSERVER_ADMIN_PORT_9121_TCP_ADDR=10.0.0.2",
		"CELLSERVER_ADMIN_BIND=::1",
	})
	require.NoError(t, err)
	require.Equal(t, "0", c.Value("admin-port"))
	require.Equal(t, "::1", c.Value("admin-bind"))
	c, err = config.Load(nil, []string{"CELLSERVER_ADMIN_PORT=9121"})
	require.NoError(t, err)
	require.Equal(t, "9121", c.Value("admin-port"))
}

// TestListenersHavePlacesOfTheirOwn: two listeners with the same port of the same address are a
// fault that names both, however the address is written.
func TestListenersHavePlacesOfTheirOwn(t *testing.T) {
	for flags, want := range map[string]string{
		"--port 7000 --admin-port 7000":                                               `admin-port 7000 is the port of option "port" as well, at 127.0.0.1`,
		"--port 0 --tls-port 7000 --admin-port 7000":                                  `admin-port 7000 is the port of option "tls-port" as well`,
		"--port 7000 --tls-port 7000":                                                 `tls-port 7000 is the port of option "port" as well`,
		"--tls-port 6379":                                                             `tls-port 6379 is the port of option "port" as well`,
		"--port 7000 --bind 127.0.0.1 --admin-port 7000 --admin-bind 127.0.0.2":       "",
		"--port 7000 --bind 127.0.0.1 --admin-port 7000 --admin-bind ::1":             "",
		"--port 7000 --bind ::1 --admin-port 7000 --admin-bind -0:0:0:0:0:0:0:1":      "is the port of option",
		"--port 7000 --bind * --requirepass x --admin-port 7000 --admin-bind 0.0.0.0": "is the port of option",
		"--port 7000 --bind ::* --requirepass x --admin-port 7000 --admin-bind ::1":   "is the port of option",
		"--port 7000 --bind ::* --requirepass x --admin-port 7000":                    "is the port of option",
		"--port 7000 --bind * --requirepass x --admin-port 7000 --admin-bind ::1":     "",
		"--bind localhost --admin-port 6379 --admin-bind localhost":                   "is the port of option",
		"--bind * -::* --requirepass x":                                               "",
		"--bind 127.0.0.1 127.0.0.1":                                                  "bind has 127.0.0.1 and 127.0.0.1, which are the same address",
		"--bind * 127.0.0.1 --requirepass x":                                          "bind has * and 127.0.0.1, which are the same address",
		"--admin-port 7000 --admin-bind ::1 ::1":                                      "admin-bind has ::1 and ::1",
		"--port 0 --tls-port 0 --admin-port 0":                                        "",
		"--port 0 --bind 127.0.0.1 127.0.0.1":                                         "",
	} {
		_, err := config.Load(strings.Fields(flags), nil)
		if want == "" {
			require.NoError(t, err, flags)
			continue
		}
		require.ErrorContains(t, err, want, flags)
		require.Len(t, config.Faults(err), 1, flags)
	}
}

// TestServiceLinks: variables that Kubernetes sets for a service named cellserver are not
// options, and other variables with the prefix are.
func TestServiceLinks(t *testing.T) {
	c, err := config.Load(nil, []string{
		"CELLSERVER_SERVICE_HOST=10.0.0.1", "CELLSERVER_SERVICE_PORT=6379", "CELLSERVER_SERVICE_PORT_REDIS=6379",
		"CELLSERVER_PORT=tcp://10.0.0.1:6379", "CELLSERVER_PORT_6379_TCP=tcp://10.0.0.1:6379",
		"CELLSERVER_PORT_6379_TCP_PROTO=tcp", "CELLSERVER_PORT_6379_TCP_PORT=6379", "CELLSERVER_PORT_6379_TCP_ADDR=10.0.0.1",
		"CELLSERVER_MAXCLIENTS=77",
	})
	require.NoError(t, err)
	require.Equal(t, [][2]string{{"port", "6379"}}, c.Get(func(name string) bool { return name == "port" }))
	require.Equal(t, [][2]string{{"maxclients", "77"}}, c.Get(func(name string) bool { return name == "maxclients" }))
	c, err = config.Load(nil, []string{"CELLSERVER_PORT=7000"})
	require.NoError(t, err)
	require.Equal(t, [][2]string{{"port", "7000"}}, c.Get(func(name string) bool { return name == "port" }))
	_, err = config.Load(nil, []string{"CELLSERVER_PORT=70000"})
	require.Error(t, err)
}
