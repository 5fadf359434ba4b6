package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/front/web"
)

// behindProxy makes a port one behind a gateway at 10.0.0.0/8, fd00::/8 and this machine.
func behindProxy(g web.Gateway) func(c *web.Config) {
	return func(c *web.Config) {
		c.Gateway = g
		for _, network := range []string{"127.0.0.1/32", "10.0.0.0/8", "fd00::/8"} {
			c.Trusted = append(c.Trusted, netip.MustParsePrefix(network))
		}
	}
}

// set sets header fields.
func set(pairs ...string) func(r *http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			r.Header.Add(pairs[i], pairs[i+1])
		}
	}
}

// keyOf returns the key that a check has asked for, or "" with the response if it has not.
func (p *port) keyOf(t *testing.T, method, target string, change func(r *http.Request)) (key string, w *httptest.ResponseRecorder) {
	t.Helper()
	p.asked = nil
	w = p.ask(t, method, target, "", change)
	if len(p.asked) == 0 {
		return "", w
	}
	key = strings.TrimPrefix(p.asked[0], "RL.USE api ")
	return strings.TrimSuffix(key, " 1 MS WITHDETAILS"), w
}

func TestTheAddressOfTheClient(t *testing.T) {
	p := newPort(t, behindProxy(web.NoGateway))
	p.reply = "*2\r\n*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:0\r\n*1\r\n*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:0\r\n"
	for name, row := range map[string]struct {
		peer string
		list []string
		want string
	}{
		"no proxy":                         {"192.0.2.1:5", nil, "192.0.2.1"},
		"a client that lies":               {"192.0.2.1:5", []string{"1.1.1.1"}, "192.0.2.1"},
		"a client of a proxy":              {"10.0.0.1:5", []string{"192.0.2.2"}, "192.0.2.2"},
		"a client of a proxy that lies":    {"10.0.0.1:5", []string{"1.1.1.1, 192.0.2.2"}, "192.0.2.2"},
		"lies in fields of their own":      {"10.0.0.1:5", []string{"1.1.1.1", "10.0.0.9", "192.0.2.2"}, "192.0.2.2"},
		"several proxies":                  {"10.0.0.1:5", []string{"192.0.2.2,10.0.0.2 , 10.0.0.3"}, "192.0.2.2"},
		"several proxies in several lines": {"10.0.0.1:5", []string{"9.9.9.9, 192.0.2.2", "10.0.0.2"}, "192.0.2.2"},
		"only proxies":                     {"10.0.0.1:5", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"a proxy without a list":           {"10.0.0.1:5", nil, "10.0.0.1"},
		"an empty list":                    {"10.0.0.1:5", []string{""}, "10.0.0.1"},
		"a word":                           {"10.0.0.1:5", []string{"192.0.2.2, unknown"}, "10.0.0.1"},
		"a word behind a proxy":            {"10.0.0.1:5", []string{"192.0.2.2, unknown, 10.0.0.2"}, "10.0.0.2"},
		"with a port":                      {"10.0.0.1:5", []string{"192.0.2.2:443"}, "192.0.2.2"},
		"IPv6":                             {"[fd00::1]:5", []string{"2001:db8::1"}, "2001:db8::1"},
		"IPv6 in brackets":                 {"[fd00::1]:5", []string{"[2001:DB8::1]"}, "2001:db8::1"},
		"IPv6 with a port":                 {"[fd00::1]:5", []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		"IPv6 with a zone":                 {"[fd00::1]:5", []string{"fe80::1%eth0"}, "fe80::1"},
		"IPv4 in IPv6":                     {"[::ffff:10.0.0.1]:5", []string{"::ffff:192.0.2.2"}, "192.0.2.2"},
	} {
		key, _ := p.keyOf(t, "GET", "/v1/check/api/key=ip", func(r *http.Request) {
			r.RemoteAddr = row.peer
			for _, line := range row.list {
				r.Header.Add("X-Forwarded-For", line)
			}
		})
		require.Equal(t, row.want, key, name)
	}
}

func TestTheOriginalRequest(t *testing.T) {
	const all = "key=method&key=host&key=path&key=uri"
	forwarded := set("X-Forwarded-Method", "PUT", "X-Forwarded-Host", "Forwarded.example:443", "X-Forwarded-Uri", "/f%2Fa?x=1")
	originals := set("X-Original-Method", "DELETE", "X-Original-Host", "Original.example.", "X-Original-URI", "/o|b?y")
	both := func(r *http.Request) { forwarded(r); originals(r) }
	for name, row := range map[string]struct {
		gateway web.Gateway
		target  string
		change  func(r *http.Request)
		want    string
	}{
		"nginx":                   {web.Nginx, "/v1/check/api/" + all + "?key=x", both, "DELETE|original.example|/o%7Cb|/o%7Cb?y"},
		"traefik":                 {web.Traefik, "/v1/check/api/" + all + "?key=x", both, "PUT|forwarded.example|/f%252Fa|/f%252Fa?x=1"},
		"caddy":                   {web.Caddy, "/v1/check/api/" + all + "/more", both, "PUT|forwarded.example|/f%252Fa|/f%252Fa?x=1"},
		"envoy":                   {web.Envoy, "/v1/check/api/" + all + "/e%2Fc/../d?z=1&key=x", both, "POST|example.com|/e%252Fc/../d|/e%252Fc/../d?z=1&key=x"},
		"envoy, with an odd path": {web.Envoy, "/v1/check/api/" + all + "//x%22%7C?", both, "POST|example.com|//x%2522%257C|//x%2522%257C?"},
	} {
		key, _ := newPort(t, behindProxy(row.gateway)).keyOf(t, "POST", row.target, row.change)
		require.Equal(t, row.want, key, name)
	}
}

// TestOriginalRequestsThatAreMissing checks that no request of a client falls back to a key that all clients share.
func TestOriginalRequestsThatAreMissing(t *testing.T) {
	uri := set("X-Original-URI", "/a", "X-Forwarded-Uri", "/a")
	twice := set("X-Original-URI", "/a", "X-Original-URI", "/b")
	for name, row := range map[string]struct {
		gateway web.Gateway
		peer    string
		change  func(r *http.Request)
		status  int
		want    string
	}{
		"no gateway":          {web.NoGateway, "127.0.0.1:7", uri, 400, "need the option http-gateway"},
		"a peer that is none": {web.Nginx, "192.0.2.1:7", uri, 403, "only from the option http-trusted-proxies"},
		"envoy too":           {web.Envoy, "192.0.2.1:7", uri, 403, "only from the option http-trusted-proxies"},
		"no header field":     {web.Nginx, "127.0.0.1:7", nil, 400, "no X-Original-Uri"},
		"that of another":     {web.Nginx, "127.0.0.1:7", set("X-Forwarded-Uri", "/a"), 400, "no X-Original-Uri"},
		"an empty one":        {web.Traefik, "127.0.0.1:7", set("X-Forwarded-Uri", ""), 400, "no X-Forwarded-Uri"},
		"no path":             {web.Envoy, "127.0.0.1:7", nil, 400, "no path behind the parameters"},
		"two":                 {web.Nginx, "127.0.0.1:7", twice, 429, "X-Original-Uri is there 2 times"},
	} {
		p := newPort(t, behindProxy(row.gateway))
		for _, source := range []string{"uri", "path"} {
			key, w := p.keyOf(t, "GET", "/v1/check/api/key="+source, func(r *http.Request) {
				r.RemoteAddr = row.peer
				if row.change != nil {
					row.change(r)
				}
			})
			require.Empty(t, key, name)
			require.Equal(t, row.status, w.Code, name)
			require.Contains(t, w.Body.String(), row.want, name)
		}
	}
}

func TestHeaderFieldsInKeys(t *testing.T) {
	p := newPort(t, nil)
	for _, row := range []struct {
		params string
		change func(r *http.Request)
		want   string
	}{
		{"key=header:X-Key", set("X-Key", "a|b%c"), "a|b%c"},
		{"key=header:x-key", set("x-KEY", "a"), "a"},
		{"key=header:X-Key&key=text:b|c", set("X-Key", "a|b%"), "a%7Cb%25|b%7Cc"},
		{"key=header:X-Key&key=header:X-Two", set("X-Two", "b"), "|b"},
	} {
		key, _ := p.keyOf(t, "GET", "/v1/check/api/"+row.params, row.change)
		require.Equal(t, row.want, key)
	}
	key, w := p.keyOf(t, "GET", "/v1/check/api/key=header:X-Key&deny=403", set("X-Key", "a", "X-Key", "b"))
	require.Empty(t, key)
	require.Equal(t, 403, w.Code, "a client must not get by with it")
}

// FuzzNoTwoValuesMakeOneKey checks that the values of two parts can be read from the key.
func FuzzNoTwoValuesMakeOneKey(f *testing.F) {
	f.Add("a|", "b", "a", "|b")
	f.Add("%7C", "", "|", "")
	p := newPort(f, nil)
	p.reply = "-NOPOLICY\r\n"
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		key := func(x, y string) string {
			p.asked = nil
			p.ask(t, "GET", "/v1/check/api/key=header:A&key=header:B", "", func(r *http.Request) {
				r.Header["A"], r.Header["B"] = []string{x}, []string{y}
			})
			return strings.Join(p.asked, "")
		}
		if strings.ContainsAny(a+b+c+d, "\r\n") || len(a+b+c+d) > 1000 {
			return // no header field has these
		}
		require.Equal(t, a == c && b == d, key(a, b) == key(c, d))
	})
}
