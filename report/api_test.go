package report_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/stats"
)

// source is a server whose state a test sets.
type source struct {
	actions bool
	keys    stats.SeenKeys // those called, and those denied if denied is nil
	denied  *stats.SeenKeys
	changes stats.Changes
	table   interface{ Command(string) (int, bool) }
	reply   map[string]string

	others    []report.Other
	othersErr error
	waits     []bool // of the calls of Others
}

func (s *source) Identity() report.Server {
	return report.Server{ID: "h:1", Version: "1", GroupBy: ":", Client: "redis-cli -p 1"}
}
func (s *source) Actions() bool  { return s.actions }
func (s *source) Databases() int { return 16 }
func (s *source) Denied() stats.SeenKeys {
	if s.denied != nil {
		return *s.denied
	}
	return s.keys
}
func (s *source) Called() stats.SeenKeys { return s.keys }

func (s *source) Others(wait bool) ([]report.Other, error) {
	s.waits = append(s.waits, wait)
	return s.others, s.othersErr
}

func (s *source) GroupOf(key string) string {
	return stats.GroupName([]byte(key), ":")
}

func (s *source) Policy(key string) (name, of string, is bool) {
	name, of, is = strings.Cut(key, ":")
	return name, of, is && name == "policy"
}
func (s *source) Changes(since int64) []stats.Change { return s.changes.Since(since) }
func (s *source) Caller(id int64) (report.Caller, bool) {
	return report.Caller{ID: id, User: "app", Name: "orders"}, id < 100
}

func (s *source) Clients(most int) []report.ClientLine {
	return make([]report.ClientLine, min(most, 3))
}

func (s *source) SlowLog(most int) []report.SlowCall { return make([]report.SlowCall, min(most, 3)) }

func (s *source) May(u *acl.User, name string) bool {
	id, known := s.table.Command(name)
	return known && u.Rules().Selectors()[0].Command(id, nil)
}

func (s *source) Execute(_ *acl.User, _ string, _ int, args [][]byte) ([]byte, error) {
	switch name := string(args[0]); name {
	case "WAITS":
		return nil, report.ErrWaits
	case "SLOW":
		return nil, report.ErrTimeout
	default:
		return []byte(s.reply[name]), nil
	}
}

// apiOf returns a handler about src for two users: admin may do everything, and app may only read
// keys that begin with app:.
func apiOf(t testing.TB, src *source) (ask func(method, target, body string, user string) *httptest.ResponseRecorder) {
	t.Helper()
	table := commands.NewTable()
	src.table = table
	users := acl.NewUsers(table)
	for name, rules := range map[string]string{"admin": "on nopass allkeys allcommands", "app": "on nopass ~app:* +info"} {
		_, _, err := users.Set(name, strings.Fields(rules))
		require.NoError(t, err)
	}
	recorder := report.NewRecorder(limit.Instant(1e18), nil)
	recorder.Add(report.Sample{At: limit.Instant(1e18), Civil: at, Calls: 1})
	handler := report.New(recorder, src).Handler(func(r *http.Request) *acl.User {
		u, _ := users.ByName(r.Header.Get("User"))
		return u
	})
	return func(method, target, body, user string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, target, strings.NewReader(body))
		req.Header.Set("User", user)
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		return w
	}
}

func seenKeys(names ...string) (seen stats.SeenKeys) {
	for i, name := range names {
		seen.Keys = append(seen.Keys, stats.SeenKey{
			Key: name, PerSecond: float64(100 - i), Clients: []int64{int64(i + 1), 500}, First: limit.Instant(1e18 - 30e9),
			SeenCall: stats.SeenCall{Command: "cl.throttle", Args: "0 1 60 1", Limit: 6, RetryAfter: 3 * time.Second},
		})
		seen.PerSecond += float64(100 - i)
	}
	return seen
}

func TestAPIAnswersEachReport(t *testing.T) {
	src := &source{keys: seenKeys("app:1", "b:2\xff"), reply: map[string]string{"RL.INFO": "%1\r\n$4\r\ntype\r\n$6\r\nstring\r\n", "PTTL": ":1500\r\n"}}
	src.changes.Add(stats.Change{At: at - 1000, Kind: "config", Text: "CONFIG SET x", By: "admin"})
	ask := apiOf(t, src)
	for path, want := range map[string]string{
		"overview":                  `"verdict":{"kind":`,
		"history?span=5m":           `{"step":1,`,
		"keys":                      `"key":"app:1","group":"app"`,
		"keys?by=calls&n=1&group=b": `{"b64":"YjoyIf8="}`,
		"groups":                    `[]`,
		"changes?since=0":           `"mark":"A","kind":"config"`,
		"changes?since=1":           `[]`,
		"key?db=0&key=app:1":        `"ttl_ms":1500`,
		"key?key=%ff":               `{"b64":"/w=="}`,
		"clients?n=2":               `[{"id":0`,
		"slowlog":                   `[{"id":0`,
	} {
		w := ask("GET", "/api/v1/"+path, "", "admin")
		require.Equal(t, 200, w.Code, "%s: %s", path, w.Body)
		require.True(t, json.Valid(w.Body.Bytes()), path)
		if path != "keys?by=calls&n=1&group=b" {
			require.Contains(t, w.Body.String(), want, path)
		}
		require.Equal(t, "application/json; charset=utf-8", w.Header().Get("Content-Type"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	}
	var keys []report.DeniedKey
	require.NoError(t, json.Unmarshal(ask("GET", "/api/v1/keys?group=b", "", "admin").Body.Bytes(), &keys))
	require.Len(t, keys, 1)
	require.Equal(t, report.Key("b:2\xff"), keys[0].Key)
	require.Equal(t, "1/min", keys[0].Limit)
	require.EqualValues(t, 3000, keys[0].RetryMs)
	require.Equal(t, int64(at-30e3), keys[0].Since)
	require.Equal(t, []report.Caller{{ID: 2, User: "app", Name: "orders"}}, keys[0].Clients, "one that is gone is left out")

	var state report.KeyState
	require.NoError(t, json.Unmarshal(ask("GET", "/api/v1/key?key=app:1", "", "admin").Body.Bytes(), &state))
	require.True(t, state.Exists)
	require.Equal(t, map[string]any{"type": "string"}, state.Info)
	require.Equal(t, "redis-cli -p 1 DEL app:1", state.Actions[1].Line)
	require.NoError(t, json.Unmarshal(ask("GET", "/api/v1/key?db=3&key=app:1", "", "admin").Body.Bytes(), &state))
	require.Equal(t, "redis-cli -p 1 -n 3 DEL app:1", state.Actions[1].Line)
}

// TestAPIChecksItsParameters: unknown, repeated or out-of-bounds parameters are refused with 400
// and a reason.
func TestAPIChecksItsParameters(t *testing.T) {
	ask := apiOf(t, &source{})
	for _, row := range []struct {
		method, path string
		status       int
	}{
		{"GET", "nothing", 404},
		{"GET", "", 404},
		{"GET", "overview/", 404},
		{"POST", "overview", 405},
		{"DELETE", "keys", 405},
		{"HEAD", "overview", 200},
		{"GET", "overview?x=1", 400},
		{"GET", "history?span=0", 400},
		{"GET", "history?span=-1", 400},
		{"GET", "history?span=25h", 400},
		{"GET", "history?span=86400", 200},
		{"GET", "history?span=86401", 400},
		{"GET", "history?span=9223372036854775807d", 400},
		{"GET", "history?span=", 400},
		{"GET", "history?span=1&span=2", 400},
		{"GET", "keys?n=0", 400},
		{"GET", "keys?n=1001", 400},
		{"GET", "keys?n=1000", 200},
		{"GET", "keys?n=1e3", 400},
		{"GET", "keys?by=x", 400},
		{"GET", "changes?since=-1", 400},
		{"GET", "changes?since=99999999999999999999", 400},
		{"GET", "key", 400},
		{"GET", "key?key=a&db=16", 400},
		{"GET", "key?key=a&db=-1", 400},
		{"GET", "key?key=" + strings.Repeat("a", 16<<10+1), 400},
		{"GET", "keys?group=%zz", 400},
		{"GET", "keys?a;b", 400},
	} {
		w := ask(row.method, "/api/v1/"+row.path, "", "admin")
		require.Equal(t, row.status, w.Code, "%.60s: %s", row.path, w.Body)
		if row.status != 200 {
			var failure report.Failure
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &failure))
			require.NotEmpty(t, failure.Error)
			require.Less(t, len(failure.Error), 200)
		}
	}
}

// TestAPIShowsNoKeyThatAUserMayNotRead: neither in a list, nor in a verdict, nor by its name.
func TestAPIShowsNoKeyThatAUserMayNotRead(t *testing.T) {
	secret := "secret:bank"
	src := &source{keys: seenKeys(secret, "app:1")}
	src.keys.PerSecond = 110
	ask := apiOf(t, src)
	require.Contains(t, ask("GET", "/api/v1/overview", "", "admin").Body.String(), secret)
	for _, path := range []string{"overview", "keys", "keys?by=calls", "keys?group=secret", "groups", "history", "changes"} {
		w := ask("GET", "/api/v1/"+path, "", "app")
		require.Equal(t, 200, w.Code)
		require.NotContains(t, w.Body.String(), "bank", path)
	}
	require.Contains(t, ask("GET", "/api/v1/overview", "", "app").Body.String(), `"kind":"one_caller"`)
	require.Contains(t, ask("GET", "/api/v1/keys", "", "app").Body.String(), "app:1")
	for _, path := range []string{"key?key=secret:bank", "clients", "slowlog"} {
		require.Equal(t, 403, ask("GET", "/api/v1/"+path, "", "app").Code, path)
		require.Equal(t, 403, ask("GET", "/api/v1/"+path, "", "").Code, path)
	}
	require.Equal(t, "[]", ask("GET", "/api/v1/keys", "", "").Body.String(), "nobody may read nothing")
}

func TestAPIRunsCommandsIfAllowed(t *testing.T) {
	src := &source{reply: map[string]string{
		"DEL": ":1\r\n", "BAD": "-NOPERM no\r\n", "GET": "$2\r\n\xff\x00\r\n", "NIL": "_\r\n", "BROKEN": "*9\r\n", "LIST": "*3\r\n+OK\r\n,1.5\r\n#t\r\n",
		"MAP": "%1\r\n+a\r\n*1\r\n-ERR x\r\n", "INF": ",inf\r\n", "TEXT": "=7\r\ntxt:abc\r\n", "DEEP": strings.Repeat("*1\r\n", 400) + ":1\r\n",
	}}
	ask := apiOf(t, src)
	require.Equal(t, 403, ask("POST", "/api/v1/run", `{"args":["DEL","a"]}`, "admin").Code, "admin-actions no")
	src.actions = true
	for body, want := range map[string]string{
		`{"args":["DEL","a"]}`:                   `{"reply":1}`,
		`{"args":["BAD"]}`:                       `{"error":"NOPERM no"}`,
		`{"args":["GET",{"b64":"/wA="}],"db":3}`: `{"reply":{"b64":"/wA="}}`,
		`{"args":["NIL"]}`:                       `{}`,
		`{"args":["LIST"]}`:                      `{"reply":["OK",1.5,true]}`,
		`{"args":["MAP"]}`:                       `{"reply":{"a":[{"error":"ERR x"}]}}`,
		`{"args":["INF"]}`:                       `{"reply":"inf"}`,
		`{"args":["TEXT"]}`:                      `{"reply":"abc"}`,
	} {
		w := ask("POST", "/api/v1/run", body, "admin")
		require.Equal(t, 200, w.Code, "%s: %s", body, w.Body)
		require.JSONEq(t, want, w.Body.String(), body)
	}
	for body, status := range map[string]int{
		`{"args":[]}`: 400, `{}`: 400, `[]`: 400, ``: 400, `{"args":["A"],"x":1}`: 400, `{"args":["A"]}{}`: 400, `{"args":["A"],"db":16}`: 400, `{"args":["A"],"db":-1}`: 400,
		`{"args":[1]}`: 400, `{"args":[` + strings.Repeat(`"a",`, 1024) + `"a"]}`: 400, `{"args":["` + strings.Repeat("a", 65<<10) + `"]}`: 400,
		`{"args":["WAITS"]}`: 400, `{"args":["SLOW"]}`: 504, `{"args":["BROKEN"]}`: 500, `{"args":["DEEP"]}`: 422,
	} {
		require.Equal(t, status, ask("POST", "/api/v1/run", body, "admin").Code, "%.40s", body)
	}
	require.Equal(t, 403, ask("POST", "/api/v1/run", `{"args":["DEL","a"]}`, "").Code)
	require.Equal(t, 405, ask("GET", "/api/v1/run", "", "admin").Code)
}

// FuzzAPI: the reply to any request is JSON with a status that is the client's fault or a
// success, and never an internal error.
func FuzzAPI(f *testing.F) {
	f.Add("overview", "", "")
	f.Add("keys", "by=calls&n=5&group=a", "")
	f.Add("history", "span=6h", "")
	f.Add("key", "key=%ff&db=1", "")
	f.Add("run", "", `{"args":["DEL",{"b64":"/wA="}],"db":1}`)
	f.Fuzz(func(t *testing.T, name, query, body string) {
		src := &source{actions: true, keys: seenKeys("app:1"), reply: map[string]string{"DEL": ":1\r\n", "RL.INFO": "_\r\n", "PTTL": ":-2\r\n"}}
		ask := apiOf(t, src)
		for _, method := range []string{"GET", "POST"} {
			w := ask(method, (&url.URL{Path: "/api/v1/" + name, RawQuery: cleaned(query)}).String(), body, "admin")
			require.True(t, json.Valid(w.Body.Bytes()), "%q", w.Body)
			require.Contains(t, []int{200, 400, 404, 405, 500}, w.Code)
			if w.Code == 500 {
				require.Equal(t, "run", name, "only a reply that nobody gave can be unreadable")
			}
		}
	})
}

// cleaned replaces characters that no request can contain.
func cleaned(query string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '+'
		}
		return r
	}, query)
}

// FuzzReply: no reply makes the decoder panic or allocate beyond its size.
func FuzzReply(f *testing.F) {
	for _, reply := range []string{":1\r\n", "*2\r\n$1\r\na\r\n_\r\n", "%1\r\n+a\r\n,1.5\r\n", "!3\r\nERR\r\n", "=5\r\ntxt:a\r\n", "$-1\r\n", "*1000000000\r\n"} {
		f.Add(reply)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		ask := apiOf(t, &source{actions: true, reply: map[string]string{"X": reply}})
		w := ask("POST", "/api/v1/run", `{"args":["X"]}`, "admin")
		require.True(t, json.Valid(w.Body.Bytes()), "%q", w.Body)
		require.Contains(t, []int{200, 422, 500}, w.Code, fmt.Sprint(reply))
	})
}
