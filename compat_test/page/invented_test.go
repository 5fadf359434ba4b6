package page_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellserver/cellserver/admin/page"
	"github.com/cellserver/cellserver/report"
)

// invented is what an API answers that no server is behind.
type invented struct {
	overview report.Overview
	fleet    *report.Fleet // nil for a server without others
	history  func(span int64) report.History
	keys     []report.DeniedKey
	groups   []report.Group
	changes  []report.Change
	state    report.KeyState
	silent   atomic.Bool // answers nothing but 503
	asked    chan report.RunRequest
}

// serve answers as the admin port does, and returns its address.
func (v *invented) serve(t testing.TB) string {
	v.asked = make(chan report.RunRequest, 16)
	mux := http.NewServeMux()
	mux.Handle("/", page.Handler())
	answer := func(path string, make func(r *http.Request) any) {
		mux.HandleFunc("/api/v1/"+path, func(w http.ResponseWriter, r *http.Request) {
			if v.silent.Load() {
				http.Error(w, "invented silence", http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(make(r)); err != nil {
				panic(err)
			}
		})
	}
	answer("overview", func(r *http.Request) any {
		o := v.overview
		o.At = time.Now().UnixMilli()
		if r.FormValue("fleet") != "" {
			o.Fleet = v.fleet
		}
		return o
	})
	answer("history", func(r *http.Request) any {
		span, err := strconv.ParseInt(r.FormValue("span"), 10, 64)
		if err != nil {
			panic(err)
		}
		h := v.history(span)
		if r.FormValue("fleet") != "" {
			h.Fleet = v.fleet
		}
		return h
	})
	answer("keys", func(r *http.Request) any {
		keys := []report.DeniedKey{}
		for _, k := range v.keys {
			if !r.URL.Query().Has("group") || string(k.Group) == r.FormValue("group") {
				keys = append(keys, k)
			}
		}
		if r.FormValue("fleet") != "" {
			return report.FleetKeys{Fleet: *v.fleet, Keys: keys}
		}
		return keys
	})
	answer("groups", func(r *http.Request) any {
		if r.FormValue("fleet") != "" {
			return report.FleetGroups{Fleet: *v.fleet, Groups: v.groups}
		}
		return v.groups
	})
	answer("changes", func(*http.Request) any { return v.changes })
	answer("key", func(r *http.Request) any {
		s := v.state
		s.Key = report.Key(r.FormValue("key"))
		return s
	})
	answer("run", func(r *http.Request) any {
		var asked report.RunRequest
		if r.Header.Get("X-Cellserver-Action") == "" || json.NewDecoder(r.Body).Decode(&asked) != nil {
			return report.RunReply{Error: "ERR no request of the page"}
		}
		v.asked <- asked
		if asked.Args[0] == "DEL" {
			return report.RunReply{Reply: 1}
		}
		return report.RunReply{Error: "NOPERM User oncall has no permissions"}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// ago is so many minutes before now.
func ago(minutes float64) int64 {
	return time.Now().Add(-time.Duration(minutes * float64(time.Minute))).UnixMilli()
}

func key(k string) *report.Key { r := report.Key(k); return &r }

// checks are all that a server is asked, those with failing texts by their ID.
func checks(failing map[string]string) []report.Check {
	var all []report.Check
	for _, c := range []report.Check{
		{ID: report.CheckP99, Name: "Answers in time", Text: "p99 210 µs", Bound: "≤ 1 ms"},
		{ID: report.CheckLoops, Name: "Event loops have room", Text: "busiest 34 %", Bound: "≤ 80 %"},
		{ID: report.CheckErrors, Name: "Few errors answered", Text: "0/s", Bound: "≤ 1/s"},
		{ID: report.CheckRefused, Name: "No client refused or cut off", Text: "0 in 5 min", Bound: "0"},
		{ID: report.CheckMemory, Name: "Memory has room", Text: "212 of 1,024 MiB", Bound: "≤ 80 %"},
		{ID: report.CheckState, Name: "State is kept", Text: "synced 0.6 s ago", Bound: "≤ 2 s"},
		{ID: report.CheckClock, Name: "Clock is steady", Text: "step 0 s", Bound: "≤ 1 s"},
		{ID: report.CheckScripts, Name: "No script in the way", Text: "longest 0.4 ms", Bound: "≤ 100 ms"},
		{ID: report.CheckLogins, Name: "Few failed logins", Text: "0 in 5 min", Bound: "≤ 10"},
	} {
		text, bad := failing[c.ID]
		if c.OK = !bad; bad {
			c.Text = text
		}
		all = append(all, c)
	}
	return all
}

// waves is a history in which denied and p99 are functions of minutes before now.
func waves(minutes float64, base float64, denied, p99 func(ago float64) float64, marks ...report.Change) func(int64) report.History {
	return func(span int64) report.History {
		step := int64(1)
		if span > 3600 {
			step = 60
		}
		n := min(span, int64(minutes*60)) / step
		from := time.Now().Unix()/step*step - n*step
		h := report.History{
			Step: step, From: from * 1000, Marks: marks,
			Allowed: []int64{}, Denied: []int64{}, P50us: []float64{}, P99us: []float64{},
		}
		for i := range n {
			at := float64((n-i)*step) / 60
			wobble := 1 + 0.05*math.Sin(at/7) + 0.02*math.Sin(at*13+math.Sin(at*91))
			h.Allowed = append(h.Allowed, int64(base*wobble)*step)
			h.Denied = append(h.Denied, int64(denied(at)*wobble)*step)
			h.P50us = append(h.P50us, 48+4*math.Sin(at*41))
			h.P99us = append(h.P99us, p99(at)*(1+0.08*math.Sin(at*57)))
		}
		return h
	}
}

func flat(v float64) func(float64) float64 { return func(float64) float64 { return v } }

// since is v in the last minutes, and before otherwise.
func since(minutes, v, before float64) func(float64) float64 {
	return func(at float64) float64 {
		if at < minutes {
			return v * min(1, (minutes-at)*2+0.1)
		}
		return before
	}
}

func spark(last int, v, before float64) []float64 {
	s := make([]float64, 60)
	for i := range s {
		s[i] = before * (1 + 0.3*math.Sin(float64(i*i)))
		if i >= 60-last {
			s[i] = v
		}
	}
	return s
}

func action(id, name string, danger bool, line string, args ...report.Key) report.Action {
	return report.Action{ID: id, Name: name, Danger: danger, Line: line, Args: args}
}

// oneCaller is the incident that is looked at most: one key far above its limit.
func oneCaller() *invented {
	change := report.Change{
		ID: 2, At: ago(17), Mark: "B", Kind: "client", Text: "New library: orders-svc now calls with lettuce 6.8.1, was 6.5.0", By: "3 clients, in 4 s", Group: key("api"),
		Around: &report.Around{Group: key("api"), Minutes: 10, Before: report.Period{CallsS: 92, PerGranted: 1, DeniedElse: 0.002}, After: report.Period{CallsS: 5730, PerGranted: 57.2, DeniedElse: 0.002}},
	}
	changes := []report.Change{
		{ID: 0, At: ago(49), Mark: "", Kind: "limit", Text: "Limit of group export changed in calls: 2/min on 1,204 keys, was 5/min", By: "seen in calls"},
		{ID: 1, At: ago(33), Mark: "A", Kind: "rewrite", Text: "BGREWRITEAOF 1.4 s, longest pause 0.3 ms", By: "automatic"},
		change,
		{ID: 3, At: ago(8), Mark: "C", Kind: "config", Text: "CONFIG SET maxmemory 512mb → 1gb", By: "oncall, from 10.2.0.9"},
	}
	lettuce := []report.Caller{{ID: 7, Name: "orders-svc", User: "app", Lib: "lettuce 6.8.1", Addr: "10.1.4.7:53122"}, {ID: 8, Name: "orders-svc", User: "app", Lib: "lettuce 6.8.1", Addr: "10.1.4.8:41200"}, {ID: 9, Name: "orders-svc", User: "app", Lib: "lettuce 6.8.1", Addr: "10.1.4.9:38810"}}
	one := func(name, lib string) []report.Caller {
		return []report.Caller{{ID: 20, Name: report.Key(name), Lib: report.Key(lib), Addr: "10.1.9.3:40112"}}
	}
	v := &invented{
		overview: report.Overview{
			Server: report.Server{ID: "limiter-0:6379", Version: "0.9.0", UptimeS: 41*86400 + 6*3600, GroupBy: ":", MaxGroups: 100},
			You:    report.You{User: "oncall", Actions: true, May: []string{"look", "del", "kill"}},
			Verdict: report.Verdict{
				Kind: report.OneCaller, Title: "The limiter works. One caller is over its limit.",
				Text:  "98 % of all denials are one key, api:acme-prod. Of everybody else’s calls 0.2 % are denied, as on any night.",
				Since: ago(16), Key: key("api:acme-prod"), Group: key("api"), Change: 2, Mark: "B", Share: 0.98,
			},
			Checks: checks(nil),
			Now:    report.Now{CallsS: 48200, DeniedRatio: 0.119, UsualRatio: 0.002, P50us: 50, P99us: 212, Clients: 412, Memory: 212 << 20, MaxMemory: 1 << 30, Keys: 61840, KeysDenied: 214},
		},
		history: waves(600, 41000, since(16, 5700, 80), func(at float64) float64 {
			if at > 32.5 && at < 33.2 {
				return 390
			}
			return 210
		}, changes[1:]...),
		keys: []report.DeniedKey{
			{Key: "api:acme-prod", Group: "api", DeniedS: 5630, CallsS: 5730, Share: 0.98, Command: "cl.throttle", Args: "199 100 1", Limit: "100/s", RetryMs: 800, Clients: lettuce, Since: ago(16)},
			{Key: "login:203.0.113.77", Group: "login", DeniedS: 41, CallsS: 44, Share: 0.007, Limit: "5/min", Clients: one("edge", "go-redis 9.23.0"), Since: ago(35)},
			{Key: "api:globex", Group: "api", DeniedS: 38, CallsS: 950, Share: 0.006, Limit: "1,000/s", Clients: one("gateway", "go-redis 9.23.0")},
			{Key: "export:initech", Group: "export", DeniedS: 9, CallsS: 75, Share: 0.002, Limit: "2/min", Clients: one("reports", "redis-py 8.1.0"), Since: ago(160)},
			{Key: "api:umbrella", Group: "api", DeniedS: 8, CallsS: 800, Share: 0.001, Limit: "1,000/s", Clients: one("gateway", "go-redis 9.23.0")},
			{Key: "sms:+47-900-8812", Group: "sms", DeniedS: 3, CallsS: 4, Share: 0.0005, Limit: "3/h", Since: ago(7)},
		},
		groups: []report.Group{
			{Group: "api", CallsS: 39800, DeniedRatio: 0.143, Spark: spark(16, 0.143, 0.002), KeysDenied: 31, TopShare: 0.99, NearRatio: 0.06, Limit: "100/s"},
			{Group: "login", CallsS: 3100, DeniedRatio: 0.016, Spark: spark(0, 0, 0.016), KeysDenied: 118, TopShare: 0.82, NearRatio: 0.02},
			{Group: "search", CallsS: 2900, DeniedRatio: 0.002, Spark: spark(0, 0, 0.002), KeysDenied: 22, TopShare: 0.09, NearRatio: 0.04},
			{Group: "export", CallsS: 1100, DeniedRatio: 0.009, Spark: spark(0, 0, 0.009), KeysDenied: 12, TopShare: 0.74, NearRatio: 0.11},
			{Group: "sms", CallsS: 700, DeniedRatio: 0.006, Spark: spark(0, 0, 0.006), KeysDenied: 29, TopShare: 0.41, NearRatio: 0.03},
			{Group: "webhook", CallsS: 500, DeniedRatio: 0.0001, Spark: spark(0, 0, 0.0001), KeysDenied: 2, TopShare: 0.5},
			{Group: "other", CallsS: 100, Spark: spark(0, 0, 0), Rest: true},
		},
		changes: changes,
		state: report.KeyState{
			Group: "api", Exists: true, Command: "cl.throttle", Args: "199 100 1", Limit: "100/s", Info: map[string]any{"type": "CL", "mode": "gcra", "limit": 200, "remaining": 0},
			TTLms: 2000, DeniedS: 5630, CallsS: 5730, RetryMs: 800, Clients: lettuce, Since: ago(16),
			Actions: []report.Action{
				action("look", "Look", false, "redis-cli RL.INFO api:acme-prod CL 199 100 1", "RL.INFO", "api:acme-prod", "CL", "199", "100", "1"),
				action("del", "Reset once", true, "redis-cli DEL api:acme-prod", "DEL", "api:acme-prod"),
				action("kill", "Cut its 3 clients", true, "redis-cli CLIENT KILL USER app", "CLIENT", "KILL", "USER", "app"),
				action("off", "Disable user app", true, "redis-cli ACL SETUSER app off", "ACL", "SETUSER", "app", "off"),
			},
		},
	}
	return v
}

// healthy is a night on which nothing happens.
func healthy() *invented {
	v := oneCaller()
	v.overview.Verdict = report.Verdict{Kind: report.Healthy, Title: "All is well.", Text: "0.2 % of the calls are denied, as usual. All checks pass."}
	v.overview.Now.DeniedRatio, v.overview.Now.CallsS = 0.002, 41200
	v.history = waves(600, 41000, flat(80), flat(210))
	v.keys = v.keys[1:]
	for i := range v.keys {
		v.keys[i].Share *= 50
	}
	v.groups[0] = report.Group{Group: "api", CallsS: 35000, DeniedRatio: 0.002, Spark: spark(0, 0, 0.002), KeysDenied: 30, TopShare: 0.4, NearRatio: 0.05}
	v.changes = []report.Change{}
	v.overview.You = report.You{User: "viewer", May: []string{"look"}}
	v.state.Actions = v.state.Actions[:1]
	return v
}

// idle is a server without any calls so far.
func idle() *invented {
	v := oneCaller()
	v.overview.Server.UptimeS = 40
	v.overview.Verdict = report.Verdict{Kind: report.Idle, Title: "No client calls a limiter.", Text: "The server is up and answers. No limiter has been called for a minute."}
	v.overview.Now = report.Now{UsualRatio: -1, Clients: 1, Memory: 9 << 20}
	v.history = waves(40.0/60, 0, flat(0), flat(0))
	v.keys, v.groups = []report.DeniedKey{}, []report.Group{}
	v.changes = []report.Change{{ID: 1, At: ago(40.0 / 60), Mark: "A", Kind: "start", Text: "cellserver 0.9.0 started", By: "automatic"}}
	return v
}

// blocked is a key of a policy with everything that may apply to one.
func blocked() *invented {
	v := oneCaller()
	v.overview.Now.Repeats = 14
	for i, name := range []string{"made", "committed", "late", "cancelled", "expired", "unknown", "refused"} {
		v.overview.Now.Reservations = append(v.overview.Now.Reservations, report.Count{Name: name, N: int64(12_345 >> i)})
	}
	pattern, boosted := report.Key("acme*"), report.Key("*")
	end := time.Now().Add(50 * time.Minute).UnixMilli()
	ask := func(id, name string, words []report.Key, inputs ...report.Input) report.Action {
		return report.Action{ID: id, Name: name, Danger: true, Args: words, Line: "redis-cli -p 6379 ...", Fixed: len(words), Inputs: inputs}
	}
	hour, reason := report.Input{Before: "EX", Name: "for", Value: "1h", Empty: "for good"}, report.Input{Before: "REASON", Name: "reason", Empty: "no reason"}
	v.state.Command, v.state.Args, v.state.Limit, v.state.Client = "rl.use", "api", "policy api", "redis-cli -p 6379"
	v.state.Policy = &report.PolicyState{
		Policy: "api", Key: "acme-prod", Applies: "block", Comment: "retries without a pause, ticket 4712", Answer: []int64{1, 400, 0, 3000, 3000},
		Setting: report.Setting{Pattern: &pattern, Until: end, By: "oncall, from 10.2.0.9:41000", At: ago(10)}, Shadow: true,
		Boost: &report.Setting{Pattern: &boosted, Until: end + 864e5, By: "oncall, from 10.2.0.9:41002", At: ago(30)}, Factor: "2",
		Clauses: []report.Clause{{Clause: "TB 200 100 1s", Key: "api:acme-prod", Limited: true, Limit: 400, Used: 400, RetryMs: 10, ResetMs: 2000, Reservations: 12, Held: 390, EndsMs: 25_000}, {Clause: "SW 1000000 86400s FIXED", Key: "api:acme-prod#2", Limit: 2_000_000, Used: 1_213_000, RetryMs: -1, ResetMs: 40_000_000}},
		Try:     []report.Clause{{Clause: "TB 100 50 1s", Key: "api#try:acme-prod", Limited: true, Limit: 200, Used: 200, RetryMs: -1}},
	}
	v.state.Actions = []report.Action{
		action("look", "Look", false, "redis-cli -p 6379 RL.INFO api:acme-prod TB 400", "RL.INFO", "api:acme-prod", "TB", "400"),
		action("reset", "Reset all clauses", true, "redis-cli -p 6379 RL.RESET api acme-prod", "RL.RESET", "api", "acme-prod"),
		ask("exempt", "Exempt", []report.Key{"RL.EXEMPT", "api", "acme-prod"}, hour, reason),
		ask("override", "Override", []report.Key{"RL.OVERRIDE", "SET", "api", "acme-prod"}, hour, report.Input{Before: "LIMITS", Name: "limits", Several: true}),
	}
	return v
}

// limitChanged is everybody in a group denied by a lower limit.
func limitChanged() *invented {
	v := oneCaller()
	v.overview.Verdict = report.Verdict{
		Kind: report.Limit, Title: "The limiter works. All keys in api are denied: 10/min, was 100/min.",
		Text: "5,000 keys of api are called with 10/min since mark B; 4,870 of them are denied. Nobody else is.", Since: ago(9), Group: key("api"), Change: 2, Mark: "B", Share: 1,
	}
	v.overview.Now.DeniedRatio, v.overview.Now.KeysDenied, v.overview.Now.Keys = 0.71, 4870, 66000
	v.history = waves(300, 12000, since(9, 29000, 80), flat(240), v.changes[1:]...)
	v.keys = nil
	for i := range 10 {
		v.keys = append(v.keys, report.DeniedKey{Key: report.Key(fmt.Sprintf("api:tenant-%04d", i*37)), Group: "api", DeniedS: 5.9, CallsS: 6.2, Share: 0.0003, Limit: "10/min", Since: ago(9), Clients: v.state.Clients})
	}
	v.groups[0] = report.Group{Group: "api", CallsS: 38000, DeniedRatio: 0.76, Spark: spark(9, 0.76, 0.002), KeysDenied: 4870, TopShare: 0.0003, NearRatio: 0.2, Limit: "10/min"}
	return v
}

// manyDenied is a hundred thousand keys that are denied, and no limit that has changed.
func manyDenied() *invented {
	v := limitChanged()
	v.overview.Verdict = report.Verdict{
		Kind: report.Denials, Title: "The limiter works. More is denied than usual, of many keys.",
		Text: "About 100,000 keys are denied; none makes up more than 0.1 % of it. No limit has changed.", Since: ago(120), Group: key("scrape"),
	}
	v.overview.Now.KeysDenied, v.overview.Now.Keys, v.overview.Now.CallsS, v.overview.Now.DeniedRatio = 100_000, 1_843_201, 1_204_300, 0.63
	for i := range v.keys {
		v.keys[i].Key = report.Key(fmt.Sprintf("scrape:2001:db8:%04x:%04x::%x", i*7919%65536, i*104729%65536, i))
		v.keys[i].Group, v.keys[i].Share = "scrape", 0.0004
	}
	for i := range 93 {
		v.groups = append(v.groups, report.Group{Group: report.Key(fmt.Sprintf("tenant-%02d", i)), CallsS: float64(i), Spark: spark(0, 0, 0.01)})
	}
	v.groups[1] = report.Group{Group: "scrape", CallsS: 900_000, DeniedRatio: 0.84, Spark: spark(59, 0.84, 0.84), KeysDenied: 100_000, TopShare: 0.0004, NearRatio: 0.01, Limit: "1/s"}
	return v
}

// memoryFull is a server that has to refuse new keys.
func memoryFull() *invented {
	v := oneCaller()
	v.overview.Verdict = report.Verdict{
		Kind: report.Memory, Sick: true, Title: "Sick: memory is full. New keys of import are refused.",
		Text: "64 of 64 MiB are used, 97 % of the keys that came last are of import. Clients get OOM for keys that are new.", Since: ago(3), Group: key("import"), Share: 0.97,
	}
	v.overview.Checks = checks(map[string]string{report.CheckMemory: "64 of 64 MiB", report.CheckErrors: "1,240/s"})
	v.history = waves(120, 3000, flat(40), since(3, 1800, 210))
	v.overview.Now.P99us, v.overview.Now.CallsS, v.overview.Now.DeniedRatio = 1840, 3020, 0.013
	return v
}

// scriptRuns is a server that a script keeps.
func scriptRuns() *invented {
	v := oneCaller()
	v.overview.Verdict = report.Verdict{
		Kind: report.Script, Sick: true, Title: "Sick: a script keeps everybody waiting.",
		Text: "Script 5332031c6b470dc5a0dd9b4bf2030dea6d65de91 of client 17 (batch, 10.1.9.3:40112) has been running for 42 s.", Since: ago(0.7), Client: 17, Script: "5332031c6b470dc5a0dd9b4bf2030dea6d65de91",
	}
	v.overview.Checks = checks(map[string]string{report.CheckScripts: "42 s, still running", report.CheckP99: "p99 500 ms"})
	v.overview.Now = report.Now{CallsS: 0.4, DeniedRatio: 0, UsualRatio: 0.002, P50us: 500_000, P99us: 512_000, Clients: 412, Keys: 61840}
	v.history = waves(400, 41000, flat(90), flat(210))
	v.overview.Actions = []report.Action{action("scriptkill", "Stop the script", true, "redis-cli SCRIPT KILL", "SCRIPT", "KILL")}
	return v
}

// lockedOut is a password that was changed before its clients were.
func lockedOut() *invented {
	v := oneCaller()
	v.changes = append(v.changes, report.Change{ID: 9, At: ago(2), Mark: "D", Kind: "acl", Text: "ACL SETUSER app: passwords changed", By: "admin, from 10.2.0.9"})
	v.overview.Verdict = report.Verdict{
		Kind: report.LockedOut, Sick: true, Title: "Sick: 50 clients of app cannot log in since mark D.",
		Text: "ACL SETUSER app at mark D; 50 addresses fail with WRONGPASS since then.", Since: ago(2), User: key("app"), Change: 9, Mark: "D",
	}
	v.overview.Checks = checks(map[string]string{report.CheckLogins: "1,904 in 5 min"})
	v.history = waves(400, 12000, flat(90), flat(210), v.changes[1:]...)
	return v
}

// hostileKeys are keys that try to be something else.
var hostileKeys = []report.Key{
	`api:<img src=x onerror="window.hacked=1">`, `"><script>window.hacked=1</script>`, `javascript:window.hacked=1`,
	"api:\xff\xfe\x00binary", "two\nlines\t$(touch /tmp/x)", "'; DEL everything; '", "\u202ereversed\u202c\u200b", "{{7*7}}${7*7}", `</style><style>*{display:none}`, `","x":"`,
}

// hostile is a server whose every name is an attack.
func hostile() *invented {
	v := oneCaller()
	bad := hostileKeys[0]
	v.keys = nil
	for i, k := range hostileKeys {
		v.keys = append(v.keys, report.DeniedKey{Key: k, Group: k, DeniedS: float64(100 - i), CallsS: 100, Share: 0.1, Limit: "1/s", Clients: []report.Caller{{Name: k, User: k, Lib: k, Addr: "::1"}}})
	}
	v.groups = nil
	for _, k := range hostileKeys {
		v.groups = append(v.groups, report.Group{Group: k, CallsS: 1, Spark: []float64{}})
	}
	v.keys = append(v.keys, report.DeniedKey{Key: report.Key(fmt.Sprintf("%01000d", 7)), Group: "(none)", DeniedS: 1, CallsS: 1})
	v.overview.Verdict.Key, v.overview.Verdict.Group, v.overview.Verdict.User = &bad, &hostileKeys[1], &hostileKeys[3]
	v.overview.Verdict.Title = "The limiter works. " + string(bad+hostileKeys[6])
	v.overview.Verdict.Text = string(bad + " " + hostileKeys[1])
	v.overview.You.User = string(hostileKeys[1])
	for i := range v.changes {
		v.changes[i].Text, v.changes[i].By = string(hostileKeys[i]), string(hostileKeys[1])
		v.changes[i].Group = &hostileKeys[3]
	}
	v.state.Args = bad
	v.state.Actions[1] = action("del", "Reset once", true, `redis-cli DEL '`+string(bad)+`'`, "DEL", bad)
	return v
}
