package web_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/front/web"
)

func TestParseParams(t *testing.T) {
	key := func(parts ...web.Part) web.Params { return web.Params{Key: parts, Hits: 1, Deny: 429} }
	for raw, want := range map[string]web.Params{
		"key=ip":                     key(web.Part{Source: web.IP}),
		"key=uri":                    key(web.Part{Source: web.URI}),
		"key=path":                   key(web.Part{Source: web.Path}),
		"key=method":                 key(web.Part{Source: web.Method}),
		"key=host":                   key(web.Part{Source: web.Host}),
		"key=header:x-api-key":       key(web.Part{Source: web.Header, Text: "X-Api-Key"}),
		"key=header%3AX-Key":         key(web.Part{Source: web.Header, Text: "X-Key"}),
		"key=all":                    key(web.Part{Text: "all"}),
		"key=":                       key(web.Part{}),
		"key=text:ip":                key(web.Part{Text: "ip"}),
		"key=text:":                  key(web.Part{}),
		"key=text:a:b":               key(web.Part{Text: "a:b"}),
		"key=a%26b%3Dc%2Fd+e%25":     key(web.Part{Text: "a&b=c/d+e%"}),
		"key=a=b":                    key(web.Part{Text: "a=b"}),
		"key=ip&key=x":               key(web.Part{Source: web.IP}, web.Part{Text: "x"}),
		"hits=0&key=x&deny=403":      {Key: []web.Part{{Text: "x"}}, Hits: 0, Deny: 403},
		"key=x&hits=-3&deny=599":     {Key: []web.Part{{Text: "x"}}, Hits: -3, Deny: 599},
		"key=x&hits=922337203685477": {Key: []web.Part{{Text: "x"}}, Hits: 922337203685477, Deny: 429},
	} {
		p, err := web.ParseParams(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, p, raw)
	}
	for raw, want := range map[string]string{
		"":                                `parameter "" is not of the form name=value`,
		"hits=1":                          "the parameter key is missing",
		"key":                             `parameter "key" is not of the form`,
		"key=ip&":                         `parameter "" is not of the form`,
		"key=%zz":                         `parameter "key=%zz" is not of the form`,
		"Key=ip":                          `there is no parameter "Key"`,
		"key=ip&cost=1":                   `there is no parameter "cost"`,
		"key=cookie:x":                    `a text with a colon is text:cookie:x`,
		"key=header:":                     "names no header field",
		"key=header:a b":                  "names no header field",
		"key=header:a%0D%0Ab":             "names no header field",
		"key=header:host":                 "use key=host",
		"key=x&hits=":                     "must be one integer",
		"key=x&hits=1.5":                  "must be one integer",
		"key=x&hits=1e3":                  "must be one integer",
		"key=x&hits=+1":                   "must be one integer",
		"key=x&hits=%201":                 "must be one integer",
		"key=x&hits=1&hits=1":             "must be one integer",
		"key=x&deny=200":                  "must be one status",
		"key=x&deny=399":                  "must be one status",
		"key=x&deny=600":                  "must be one status",
		"key=x&deny=403&deny=403":         "must be one status",
		"key=x&hits=99999999999999999999": "must be one integer",
		"key=1&key=2&key=3&key=4&key=5&key=6&key=7&key=8&key=9&key=10&key=11&key=12&key=13&key=14&key=15&key=16&key=17": "at most 16 parts",
	} {
		_, err := web.ParseParams(raw)
		require.ErrorContains(t, err, want, raw)
	}
}

func FuzzParseParams(f *testing.F) {
	for _, raw := range []string{"key=ip", "key=header:X&hits=0&deny=403", "key=%7C&key=text:%25", "key"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := web.ParseParams(raw)
		if err != nil {
			return
		}
		require.NotEmpty(t, p.Key)
		require.LessOrEqual(t, len(p.Key), web.MaxParts)
		require.True(t, 400 <= p.Deny && p.Deny <= 599)
	})
}
