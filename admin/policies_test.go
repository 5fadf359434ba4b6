package admin_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/report"
)

// stateOf is the report about a key, for a user.
func stateOf(t *testing.T, o *inproc.Operated, key, user, password string) (s report.KeyState) {
	t.Helper()
	status, body := o.Get("/api/v1/key?key="+url.QueryEscape(key), user, password)
	require.Equal(t, 200, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &s))
	return s
}

// changesOf are the changes that a user sees, the newest first.
func changesOf(t *testing.T, o *inproc.Operated, user, password string) (texts []string) {
	t.Helper()
	status, body := o.Get("/api/v1/changes", user, password)
	require.Equal(t, 200, status, body)
	var changes []report.Change
	require.NoError(t, json.Unmarshal([]byte(body), &changes))
	for _, c := range changes {
		texts = append(texts, c.Text)
	}
	return texts
}

// offered are the lines of the actions on a key by their names.
func offered(s *report.KeyState) map[string]string {
	lines := make(map[string]string)
	for _, a := range s.Actions {
		lines[a.Name] = strings.TrimPrefix(a.Line, s.Client+" ")
	}
	return lines
}

// TestKeyOfAPolicyShowsItsReservations: how many are live, their units, and when the first of them ends.
func TestKeyOfAPolicyShowsItsReservations(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		w.Advance(2 * time.Second)
		c := o.Dial()
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "SW", "5", "86400", "FIXED", "CALLS", "TB", "500", "1", "60"))
		c.Do("RL.USE", "api", "acme", "300", "RESERVE", "a", "30")
		w.Advance(5 * time.Second)
		c.Do("RL.USE", "api", "acme", "40", "RESERVE", "b", "60")

		s := stateOf(t, o, "api:acme#2", "", "")
		window, bucket := s.Policy.Clauses[0], s.Policy.Clauses[1]
		require.Equal(t, []int64{2, 2, 25_000}, []int64{window.Reservations, window.Held, window.EndsMs})
		require.Equal(t, []int64{2, 340, 25_000}, []int64{bucket.Reservations, bucket.Held, bucket.EndsMs})
		require.Contains(t, string(s.Policy.Text), "2 reservations of 340 units, of which the first ends in 25s")
		require.EqualValues(t, 2, s.Info["reservations"])
		require.EqualValues(t, 340, s.Info["held"])
	})
}

// TestKeyOfAPolicyIsExplained: the explanation has what applies to the key and why, the client that
// set it, its expiry, each limit in numbers, and the possible actions.
func TestKeyOfAPolicyIsExplained(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin("--admin-actions", "yes")
		w.Advance(2 * time.Second)
		c := o.Dial()
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "TB", "5", "1", "60", "SW", "100", "86400", "FIXED"))
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "TRY", "api", "LIMITS", "TB", "4", "1", "60"))
		c.Do("RL.USE", "api", "acme", "3")

		s := stateOf(t, o, "api:acme#2", "", "")
		p := s.Policy
		require.NotNil(t, p)
		require.Equal(t, "default", p.Applies)
		require.Equal(t, report.Key("acme"), p.Key)
		require.Nil(t, p.Pattern)
		require.Equal(t, []report.Clause{
			{Clause: "TB 5 1 60s", Key: "api:acme", Limit: 5, Used: 3, RetryMs: -1, ResetMs: 180_000},
			{Clause: "SW 100 86400s FIXED", Key: "api:acme#2", Limit: 100, Used: 3, RetryMs: -1, ResetMs: p.Clauses[1].ResetMs},
		}, p.Clauses)
		require.Equal(t, report.Key("TB 4 1 60s"), p.Try[0].Clause)
		require.EqualValues(t, 97, s.Info["remaining"], "RL.INFO is asked with the clause")
		actions := offered(&s)
		delete(actions, "Cut client "+c.ID()) // RL.TOP has the caller if its sample, which is random, has the call
		require.Equal(t, map[string]string{
			"Look":              "RL.INFO 'api:acme#2' SW 100",
			"Explain":           "RL.EXPLAIN api acme",
			"Reset all clauses": "RL.RESET api acme",
			"Block":             "RL.BLOCK api acme EX 1h",
			"Boost":             "RL.BOOST api acme 2 EX 1h",
			"Exempt":            "RL.EXEMPT api acme EX 1h",
			"Override":          "RL.OVERRIDE SET api acme EX 1h LIMITS TB 5 1 60s SW 100 86400s FIXED",
		}, actions)
		for _, a := range s.Actions {
			require.Equal(t, a.ID != "look" && a.ID != "explain", a.Danger, a.Name)
		}
		require.Equal(t, []string{"RL.INFO", "api#try:acme", "TB", "4"}, words(stateOf(t, o, "api#try:acme", "", "").Actions[0].Args))

		_, answer := runs(t, o, "RL.BLOCK", "api", "ac*", "EX", "1h", "REASON", "a loop")
		require.JSONEq(t, `{"reply":"OK"}`, answer)
		require.Equal(t, inproc.OK, c.Do("RL.BOOST", "api", "acme", "2", "EX", "60"))
		w.Advance(time.Second)
		s = stateOf(t, o, "api:acme", "", "")
		p = s.Policy
		require.Equal(t, "block", p.Applies)
		require.Equal(t, report.Key("ac*"), *p.Pattern)
		require.Equal(t, report.Key("a loop"), p.Comment)
		require.Regexp(t, `^default, from 127\.0\.0\.2:\d+$`, string(p.By))
		require.InDelta(t, p.At+3600_000, p.Until, 2000)
		require.Equal(t, report.Key("2"), p.Factor)
		require.Equal(t, report.Key("default, from "+c.LocalAddr().String()), p.Boost.By)
		require.Equal(t, []int64{1, 10, 0, 3599, 3599}, p.Answer)
		lines := offered(&s)
		require.Equal(t, "RL.UNBLOCK api 'ac*'", lines["Unblock"])
		require.Equal(t, "RL.UNBOOST api acme", lines["End the boost"])
		require.NotContains(t, lines, "Block")

		require.Equal(t, ":1\r\n", c.Do("RL.UNBLOCK", "api", "ac*"))
		require.Equal(t, inproc.OK, c.Do("RL.OVERRIDE", "SET", "api", "acme", "EX", "1h", "COMMENT", "ticket 7", "LIMITS", "TB", "9", "1", "1m"))
		s = stateOf(t, o, "api:acme", "", "")
		require.Equal(t, "override", s.Policy.Applies)
		require.Equal(t, report.Key("ticket 7"), s.Policy.Comment)
		require.EqualValues(t, 18, s.Policy.Clauses[0].Limit, "boosted")
		require.Equal(t, "RL.OVERRIDE DEL api acme", offered(&s)["Delete the override"])

		c.Do("RL.RESET", "api", "acme")
		_, answer = runs(t, o, "RL.RESET", "api", "acme")
		require.Equal(t, `{"reply":0}`, answer)
		require.Equal(t, []string{
			"RL.RESET api acme", // that of the admin port: callers do it all day
			`RL.OVERRIDE SET api acme EX 1h COMMENT "ticket 7" LIMITS TB 9 1 1m`, "RL.UNBLOCK api ac*", "RL.BOOST api acme 2 EX 60",
			`RL.BLOCK api ac* EX 1h REASON "a loop"`, "RL.POLICY TRY api", "RL.POLICY SET api",
		}, changesOf(t, o, "", "")[:7])
		require.NotContains(t, o.Log.String(), "acme", "which has no keys")
	})
}

// TestABannedKeyCanBeFreed: the page says that a policy bans a key, until when, and how it ends.
func TestABannedKeyCanBeFreed(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin("--admin-actions", "yes")
		c := o.Dial()
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "TB", "1", "1", "60", "BAN", "1", "60", "3600"))
		c.Do("RL.USE", "api", "mine", "2")
		w.Advance(time.Second)
		s := stateOf(t, o, "api:mine", "", "")
		require.Equal(t, "ban", s.Policy.Applies)
		require.Nil(t, s.Policy.Pattern)
		require.InDelta(t, time.Now().UnixMilli()+3599_000, s.Policy.Until, 2000)
		require.Equal(t, []int64{1, 1, 0, 3599, 3599}, s.Policy.Answer)
		require.Equal(t, "RL.UNBLOCK api mine", offered(&s)["End the ban"])
		_, answer := runs(t, o, "RL.UNBLOCK", "api", "mine")
		require.JSONEq(t, `{"reply":1}`, answer)
		require.Equal(t, "default", stateOf(t, o, "api:mine", "", "").Policy.Applies)
	})
}

// TestWhatAUserMayNotReadIsLeftOut: without the permission a user sees no patterns and reasons in
// the list of changes, no author of what applies, and no actions.
func TestWhatAUserMayNotReadIsLeftOut(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		c := o.Dial()
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "TB", "5", "1", "60"))
		require.Equal(t, inproc.OK, c.Do("RL.BLOCK", "api", "mine", "REASON", "mine, too"))
		require.Equal(t, inproc.OK, c.Do("RL.BLOCK", "api", "secret*", "REASON", "secret, too"))
		c.Do("ACL", "SETUSER", "ops", "on", ">pw", "~api:mine", "+info", "+rl.explain", "+rl.info", "+pttl", "+rl.unblock")
		c.Do("ACL", "SETUSER", "look", "on", ">pw", "~*", "+info", "+rl.info", "+pttl")
		require.Equal(t, []string{"RL.BLOCK api", `RL.BLOCK api mine REASON "mine, too"`, "RL.POLICY SET api"}, changesOf(t, o, "ops", "pw")[2:5])
		_, history := o.Get("/api/v1/history?span=1h", "ops", "pw")
		require.NotContains(t, history, "secret")

		s := stateOf(t, o, "api:mine", "ops", "pw")
		require.Equal(t, "block", s.Policy.Applies)
		require.Empty(t, s.Policy.By)
		require.Zero(t, s.Policy.Until)
		require.Equal(t, map[string]string{"Look": "RL.INFO api:mine TB 5", "Explain": "RL.EXPLAIN api mine", "Unblock": "RL.UNBLOCK api mine"}, offered(&s))

		s = stateOf(t, o, "api:mine", "look", "pw")
		require.Contains(t, s.Policy.Error, "NOPERM")
		require.Equal(t, map[string]string{"Look": "RL.INFO api:mine"}, offered(&s))
		status, _ := o.Get("/api/v1/key?key=api:secret", "ops", "pw")
		require.Equal(t, 403, status)
	})
}

// TestAKeyWithAStarIsNoPattern: a client that calls itself "*" does not have the operator block all.
func TestAKeyWithAStarIsNoPattern(t *testing.T) {
	inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
		o := w.StartAdmin()
		c := o.Dial()
		require.Equal(t, inproc.OK, c.Do("RL.POLICY", "SET", "api", "LIMITS", "TB", "5", "1", "60"))
		look := []string{"Explain", "Look", "Reset all clauses"}
		for key, names := range map[string][]string{
			"*": look, "a*": look, "": look, strings.Repeat("x", 1025): look,
			"a*b":                     append([]string{"Boost", "Exempt", "Override"}, look...),
			"a b":                     append([]string{"Block", "Boost", "Exempt", "Override"}, look...),
			"\xff":                    append([]string{"Block", "Boost", "Exempt", "Override"}, look...),
			strings.Repeat("x", 1024): append([]string{"Block", "Boost", "Exempt", "Override"}, look...),
			"room#5":                  append([]string{"Block", "Boost", "Exempt", "Override"}, look...),
		} {
			state := "api:" + key
			if key == "room#5" {
				state += "#"
			}
			s := stateOf(t, o, state, "", "")
			require.NotNil(t, s.Policy, key)
			require.Equal(t, report.Key(key), s.Policy.Key)
			lines := offered(&s)
			require.ElementsMatch(t, names, slices.Collect(maps.Keys(lines)), key)
		}
		for _, key := range []string{"api", "web:a", "x"} {
			require.Nil(t, stateOf(t, o, key, "", "").Policy, key)
		}
		require.Equal(t, "DEL web:a", func() string { s := stateOf(t, o, "web:a", "", ""); return offered(&s)["Reset once"] }())
	})
}

// words are those of a call as text.
func words(args []report.Key) (all []string) {
	for _, a := range args {
		all = append(all, string(a))
	}
	return all
}
