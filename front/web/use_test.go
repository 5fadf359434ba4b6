package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/front/web"
)

func TestCalls(t *testing.T) {
	p := newPort(t, nil)
	p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "10", "60", "FIXED", "ANCHOR", "FIRST")
	for _, row := range []struct {
		body   string
		status int
		want   string
		asked  string
	}{
		{`{"policy":"api","key":"a"}`, 200, `{"allowed":true,"limit":10,"remaining":9,"missing":0,"retryAfterMs":-1,"resetAfterMs":60000}`, "RL.USE api a 1 MS WITHDETAILS"},
		{` { "key" : "a" , "policy" : "api" , "quantity" : 4 } `, 200, `{"allowed":true,"limit":10,"remaining":5,"missing":0,"retryAfterMs":-1,"resetAfterMs":60000}`, "RL.USE api a 4 MS WITHDETAILS"},
		{`{"policy":"api","key":"a","quantity":6,"peek":true}`, 429, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"violated-policies":["api"],"allowed":false,"limit":10,"remaining":5,"missing":6,"retryAfterMs":60000,"resetAfterMs":60000}`, "RL.USE api a 6 PEEK MS WITHDETAILS"},
		{`{"policy":"api","key":"a","quantity":7,"partial":true,"peek":false}`, 200, `{"allowed":true,"limit":10,"remaining":0,"missing":2,"retryAfterMs":-1,"resetAfterMs":60000}`, "RL.USE api a 7 PARTIAL MS WITHDETAILS"},
		{`{"policy":"api","key":"a","quantity":0,"member":"m\u00fc"}`, 200, `{"allowed":true,"limit":10,"remaining":0,"missing":0,"retryAfterMs":-1,"resetAfterMs":60000}`, "RL.USE api a 0 MEMBER mü MS WITHDETAILS"},
		{`{"policy":"api","key":"","member":""}`, 200, `{"allowed":true,"limit":10,"remaining":9,"missing":0,"retryAfterMs":-1,"resetAfterMs":60000}`, "RL.USE api  1 MS WITHDETAILS"},
	} {
		p.asked = nil
		w := p.use(t, row.body, nil)
		require.Equal(t, row.status, w.Code, w.Body.String())
		require.JSONEq(t, row.want, w.Body.String())
		require.Equal(t, []string{row.asked}, p.asked)
		require.NotEmpty(t, field(w, "RateLimit"))
	}
	w := p.use(t, `{"policy":"api","key":"a","partial":true}`, nil)
	require.Equal(t, 429, w.Code, "nothing was granted")
}

func TestUsersOfCalls(t *testing.T) {
	p := newPort(t, nil)
	p.fed.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "10", "60", "FIXED", "ANCHOR", "FIRST")
	const call, force, back = `{"policy":"api","key":"a"}`, `{"policy":"api","key":"a","force":true}`, `{"policy":"api","key":"a","quantity":-1}`
	for name, row := range map[string]struct {
		body   string
		change func(r *http.Request)
		status int
		user   string
	}{
		"no credentials":           {call, nil, 200, "default"},
		"a password":               {call, basic("ann", "a"), 200, "ann"},
		"a wrong password":         {call, basic("ann", "b"), 401, ""},
		"a user that is off":       {call, basic("off", "o"), 401, ""},
		"no user":                  {call, basic("nobody", "a"), 401, ""},
		"a certificate":            {call, certificate("bob"), 200, "bob"},
		"another scheme":           {call, set("Authorization", "Bearer ann"), 401, ""},
		"no Base64":                {call, set("Authorization", "Basic %"), 401, ""},
		"force without":            {force, nil, 403, ""},
		"force with a password":    {force, basic("ann", "a"), 200, "ann"},
		"force with a certificate": {force, certificate("bob"), 200, "bob"},
		"back without":             {back, nil, 403, ""},
		"back with a password":     {back, basic("ann", "a"), 200, "ann"},
	} {
		p.users = nil
		w := p.use(t, row.body, row.change)
		require.Equal(t, row.status, w.Code, "%s: %s", name, w.Body.String())
		require.Equal(t, row.user, strings.Join(p.users, ""), name)
		require.Equal(t, row.status == 401, w.Header().Get("WWW-Authenticate") != "", name)
	}
	p.users = nil
	require.Equal(t, 401, p.use(t, call, basic("free", "any")).Code, "it is not the user of requests without credentials")
	p.Config.User = func() (string, bool) { return "free", true }
	require.Equal(t, 200, p.use(t, call, basic("free", "any")).Code)
	require.Equal(t, 403, p.use(t, force, basic("free", "any")).Code, "any password proves nothing")
	w := p.use(t, call, func(r *http.Request) { certificate("bob")(r); basic("ann", "wrong")(r) })
	require.Equal(t, 200, w.Code, "the certificate counts first")
}

// TestHostileBodies checks that no such body is a call.
func TestHostileBodies(t *testing.T) {
	p := newPort(t, nil)
	for body, want := range map[string]string{
		"":                                     "no JSON object",
		"null":                                 "no JSON object",
		"[]":                                   "no JSON object",
		`"x"`:                                  "no JSON object",
		"{":                                    "not valid JSON",
		"{}":                                   "policy\\\" is missing",
		`{"policy":"api"}`:                     "key\\\" is missing",
		`{"policy":"api","key":"a"`:            "not valid JSON",
		`{"policy":"api","key":"a",}`:          "not valid JSON",
		`{"policy":"api" "key":"a"}`:           "not valid JSON",
		`{"policy":"api","key":"a"}{}`:         "more than one",
		`{"policy":"api","key":"a"} x`:         "more than one",
		`{"policy":"api","key":"a","key":"b"}`: "key\\\" is there twice",
		`{"policy":"api","key":"a","peek":true,"peek":true}`:          "peek\\\" is there twice",
		`{"Policy":"api","key":"a"}`:                                  "no field \\\"Policy",
		`{"policy":"api","key":"a","keys":1}`:                         "no field \\\"keys",
		`{"policy":"api","key":"a","":1}`:                             "no field",
		`{"policy":"api","key":null}`:                                 "no string",
		`{"policy":"api","key":1}`:                                    "no string",
		`{"policy":["api"],"key":"a"}`:                                "no string",
		`{"policy":"api","key":{"a":{}}}`:                             "no string",
		`{"policy":"api","key":"\ud800"}`:                             "surrogate",
		`{"policy":"api","key":"\ufffd"}`:                             "surrogate",
		"{\"policy\":\"api\",\"key\":\"\xff\"}":                       "not valid UTF-8",
		"{\"policy\":\"api\",\"key\":\"\xed\xa0\x80\"}":               "not valid UTF-8",
		`{"policy":"api","key":"a","quantity":1.0}`:                   "no integer",
		`{"policy":"api","key":"a","quantity":1e3}`:                   "no integer",
		`{"policy":"api","key":"a","quantity":"1"}`:                   "no integer",
		`{"policy":"api","key":"a","quantity":9223372036854775808}`:   "no integer",
		`{"policy":"api","key":"a","quantity":null}`:                  "no integer",
		`{"policy":"api","key":"a","force":1}`:                        "no boolean",
		`{"policy":"api","key":"a","peek":true,"force":true}`:         "exclude each other",
		`{"policy":"api","key":"` + strings.Repeat("x", 16001) + `"}`: "more than 16000 bytes",
		strings.Repeat("[", 60_000):                                   "no JSON object",
		`{"policy":` + strings.Repeat("[", 60_000):                    "no string",
	} {
		w := p.use(t, body, nil)
		require.Equal(t, 400, w.Code, body)
		require.Contains(t, w.Body.String(), want, "%.100s", body)
	}
	require.Equal(t, 413, p.use(t, `{"policy":"api","key":"`+strings.Repeat("x", web.MaxBody)+`"}`, nil).Code)
	require.Equal(t, 405, p.ask(t, "GET", "/v1/use", "", nil).Code)
	const call = `{"policy":"api","key":"a"}`
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", ";"} {
		require.Equal(t, 415, p.ask(t, "POST", "/v1/use", call, func(r *http.Request) { r.Header.Set("Content-Type", kind) }).Code, kind)
	}
	require.Equal(t, 404, p.ask(t, "POST", "/v1/use", call, set("Content-Type", "Application/JSON; charset=utf-8")).Code, "there is no policy")
	require.Len(t, p.asked, 1)
}

func FuzzCall(f *testing.F) {
	for _, body := range []string{`{"policy":"api","key":"a","quantity":1,"peek":true}`, `{"policy":"api","key":"\u0000","member":"m"}`, `{"a":[{}]}`} {
		f.Add(body)
	}
	p := newPort(f, nil)
	p.reply = "-NOPOLICY\r\n"
	f.Fuzz(func(t *testing.T, body string) {
		w := p.use(t, body, nil)
		require.Contains(t, []int{400, 403, 404, 413}, w.Code)
	})
}
