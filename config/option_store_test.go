package config_test

import (
	"testing"

	"github.com/cellserver/cellserver/config"
	"github.com/stretchr/testify/require"
)

// TestPasswordsOfAStoreAreNotShown: neither CONFIG GET, nor an error about the address,
// repeats a password of it, however strange.
func TestPasswordsOfAStoreAreNotShown(t *testing.T) {
	for given, shown := range map[string]string{
		"valkey://a:1,b:2":                  "valkey://a:1,b:2",
		"redis://:canary@a":                 "redis://:***@a",
		"rediss://u:canary@a,b/0?ca=/c.pem": "rediss://u:***@a,b/0?ca=/c.pem",
		"redis://u:canary@canary:/c@a:1":    "redis://u:***@a:1",
		"redis-sentinel://u:canary@a/m?sentinel-user=s&sentinel-password=canary":        "redis-sentinel://u:***@a/m?sentinel-user=s&sentinel-password=***",
		"redis-sentinel://a/m?sentinel%2dpassword=canary":                               "redis-sentinel://a/m?sentinel%2dpassword=***",
		"valkeys-sentinel://u:canary%40canary@a:1/m?server-name=x&sentinel-password=c'": "valkeys-sentinel://u:***@a:1/m?server-name=x&sentinel-password=***",
	} {
		c, err := config.Load([]string{"--store", given}, nil)
		require.NoError(t, err, shown)
		require.Equal(t, shown, value(t, c, "store"))
	}
	for _, given := range []string{
		"canary", "redis//u:canary@a", "http://u:canary@a", "redis://u:canary@", "redis://u:canary@a:x", "redis://u:can%ary@a",
		"redis://u:canary?canary@a", "redis://u:canary#canary@a", "redis://canary@a", "redis://u:canary@a\nport 1", "redis://u:canary@a?sentinel-password=canary",
	} {
		_, err := config.Load([]string{"--store", given}, nil)
		require.ErrorContains(t, err, "argument must be the URL of a store")
		require.NotContains(t, err.Error(), "canary")
		require.NotContains(t, config.Default().Set([][2]string{{"store", given}}), "canary")
	}
}

// TestStoreExcludesWhatAServerKeeps: options that keep limits in the server contradict store, and
// all contradictions are reported at once.
func TestStoreExcludesWhatAServerKeeps(t *testing.T) {
	_, err := config.Load([]string{"--store", "redis://a", "--appendonly", "yes", "--save", "900", "1", "--databases", "4"}, nil)
	for _, name := range []string{"appendonly", "save", "databases"} {
		require.ErrorContains(t, err, `options "`+name+`" and "store" exclude each other: `)
	}
	// Default values in a file are no contradiction.
	path := writeConfig(t, "databases 16\nappendonly no\nsave \"\"\nstore redis://a\nfail-policy open\nfail-policy login: closed\nhot-keys tenant: lease\npolicy-file p\n")
	c, err := config.Load([]string{path, "--hot-keys", "lease"}, nil)
	require.NoError(t, err)
	require.Equal(t, "1", value(t, c, "databases"))
	require.Equal(t, "open login: closed", value(t, c, "fail-policy"), "the lines of a file add up")
	require.Equal(t, "lease", value(t, c, "hot-keys"), "a flag replaces them")
	require.NotEmpty(t, c.Set([][2]string{{"store", "redis://b"}}))
	require.Empty(t, c.Set([][2]string{{"store", "redis://a"}}), "it has that value")
}
