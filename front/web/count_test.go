package web_test

import (
	"maps"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

// TestResponsesAreCounted checks that each request counts once, and a denial as 429 whatever its status is.
func TestResponsesAreCounted(t *testing.T) {
	p := newPort(t, nil)
	p.fed.Packet(resp.AppendCommand(nil, []byte("RL.POLICY"), []byte("SET"), []byte("api"), []byte("LIMITS"), []byte("SW"), []byte("2"), []byte("60"), []byte("FIXED")))
	want := map[string]int64{"200": 0, "400": 0, "401": 0, "403": 0, "404": 0, "429": 0, "500": 0, "503": 0, "other": 0}
	counts := func(code string) {
		t.Helper()
		want[code]++
		is := maps.Clone(want)
		clear(is)
		p.Responses(func(code string, n int64) { is[code] += n })
		require.Equal(t, want, is)
	}
	const call = `{"policy":"api","key":"a"}`
	for _, code := range []string{"200", "200", "429"} {
		p.use(t, call, nil)
		counts(code)
	}
	require.Equal(t, 503, p.ask(t, "GET", "/v1/check/api/key=a&deny=503", "", nil).Code)
	counts("429")
	require.Equal(t, 403, p.ask(t, "GET", "/v1/check/api/key=header:a&deny=403", "", func(r *http.Request) { r.Header["A"] = []string{"1", "2"} }).Code)
	counts("429")
	require.Equal(t, 200, p.ask(t, "GET", "/v1/check/api/key=b", "", nil).Code)
	counts("200")
	for target, code := range map[string]string{"/v1/check/api/hits=x": "400", "/": "404"} {
		p.ask(t, "GET", target, "", nil)
		counts(code)
	}
	p.ask(t, "GET", "/v1/use", "", nil)
	counts("other")
	p.use(t, call, basic("ann", "wrong"))
	counts("401")
	p.use(t, `{"policy":"api","key":"a","force":true}`, nil)
	counts("403")
	p.reply = "-LOADING x\r\n"
	p.use(t, call, nil)
	counts("503")
	p.limits, p.reply = nil, "-ERR internal error\r\n"
	p.use(t, call, nil)
	counts("500")
}
