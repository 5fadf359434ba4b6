package engine_test

import (
	"strings"
	"testing"

	"github.com/cellserver/cellserver/remote/engine"
	"github.com/stretchr/testify/require"
)

func TestAddress(t *testing.T) {
	for s, want := range map[string]engine.Address{
		"valkey://a":                    {Hosts: []string{"a:6379"}},
		"redis://a:7000/":               {Hosts: []string{"a:7000"}},
		"REDIS://a/0":                   {Hosts: []string{"a:6379"}},
		"valkey://a:1,b,10.0.0.3:3":     {Hosts: []string{"a:1", "b:6379", "10.0.0.3:3"}},
		"valkey://[::1]":                {Hosts: []string{"[::1]:6379"}},
		"valkey://[::1]:7000,[fe80::2]": {Hosts: []string{"[::1]:7000", "[fe80::2]:6379"}},
		"valkey://u:p@a":                {Hosts: []string{"a:6379"}, Login: engine.Login{User: "u", Password: "p"}},
		"valkey://:p%40%3a%25@a":        {Hosts: []string{"a:6379"}, Login: engine.Login{Password: "p@:%"}},
		"valkey://u:p@ss:w/o,rd@a:1":    {Hosts: []string{"a:1"}, Login: engine.Login{User: "u", Password: "p@ss:w/o,rd"}},
		"valkeys://a":                   {Hosts: []string{"a:6379"}, TLS: &engine.TLS{}},
		"rediss://a?ca=/x/ca.pem&cert=c&key=k&server-name=n": {Hosts: []string{"a:6379"}, TLS: &engine.TLS{CA: "/x/ca.pem", Cert: "c", Key: "k", ServerName: "n"}},
		"rediss://a?skip-verify=yes":                         {Hosts: []string{"a:6379"}, TLS: &engine.TLS{SkipVerify: true}},
		"redis-sentinel://h1,h2:7/mymaster":                  {Hosts: []string{"h1:26379", "h2:7"}, Master: "mymaster"},
		"redis+sentinel://h1/mymaster":                       {Hosts: []string{"h1:26379"}, Master: "mymaster"},
		"valkeys-sentinel://u:p@h1/m?sentinel-user=su&sentinel-password=sp": {
			Hosts: []string{"h1:26379"}, Master: "m", TLS: &engine.TLS{},
			Login: engine.Login{User: "u", Password: "p"}, Sentinel: engine.Login{User: "su", Password: "sp"},
		},
	} {
		t.Run(s, func(t *testing.T) {
			got, err := engine.ParseAddress(s)
			require.NoError(t, err)
			require.Equal(t, want, *got)
		})
	}
}

func TestAddressThatIsMalformed(t *testing.T) {
	for s, want := range map[string]string{
		"":                                 "named by a URL",
		"host:6379":                        "named by a URL",
		"http://a":                         "unknown scheme",
		"valkey-cluster://a":               "unknown scheme",
		"valkey://":                        "a host is missing",
		"valkey:///0":                      "a host is missing",
		"valkey://a,,b":                    "a host is missing",
		"valkey://a,":                      "a host is missing",
		"valkey://:6379":                   "has no name",
		"valkey://a b":                     "no name has",
		"valkey://a:":                      "port of host",
		"valkey://a:0":                     "port of host",
		"valkey://a:65536":                 "port of host",
		"valkey://a:x":                     "port of host",
		"valkey://::1":                     "IPv6 address stands in brackets",
		"valkey://[::1":                    "IPv6 address stands in brackets",
		"valkey://[zz:1]":                  "no IPv6 address",
		"valkey://a,a:6379":                "named twice",
		"valkey://a/1":                     "only /0",
		"valkey://a/0/1":                   "only /0",
		"valkey://a#m":                     "behind a #",
		"valkey://secret@a":                "a user needs a password",
		"valkey://user:@a":                 "password is empty",
		"valkey://u:%zzsecret@a":           "%25",
		"valkey://u:sec?secret@a":          "%3F",
		"valkey://a?ca=x":                  "needs a scheme with TLS",
		"valkeys://a?cert=x":               "need each other",
		"valkeys://a?ca=x&ca=y":            "there twice",
		"valkeys://a?ca=":                  "is empty",
		"valkeys://a?skip-verify=1":        "yes or no",
		"valkeys://a?skip-verify=yes&ca=x": "without a use",
		"valkey://a?timeout=5":             "unknown parameter",
		"valkey://a?%zz":                   "name=value",
		"valkey://a?sentinel-password=x":   "with -sentinel",
		"redis-sentinel://a":               "names the master",
		"redis-sentinel://a/m/0":           "names the master",
		"redis-sentinel://a/m?sentinel-user=secret": "needs \"sentinel-password\"",
		"valkey://" + hosts(65):                     "at most 64 hosts",
	} {
		t.Run(s, func(t *testing.T) {
			_, err := engine.ParseAddress(s)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

func hosts(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.Repeat("h", i+1)
	}
	return strings.Join(all, ",")
}

func FuzzAddressNeverRepeatsThePassword(f *testing.F) {
	f.Add("valkey://", "@a:1/0?x")
	f.Add("redis-sentinel://u:", "@h/m")
	f.Fuzz(func(t *testing.T, before, behind string) {
		if strings.Contains(before+behind, "5ecret") {
			return
		}
		// The password stands where passwords stand: before an @ that is a host's.
		if _, err := engine.ParseAddress(before + "u:5ecret@" + behind); err != nil && !strings.Contains(behind, "@") {
			require.NotContains(t, err.Error(), "5ecret")
		}
	})
}
