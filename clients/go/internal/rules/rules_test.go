package rules_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

var folder = filepath.Join("..", "..", "testdata", "vectors")

// known are the files of vectors, with the test in this module that reads each.
var known = map[string]string{
	"headers.json": "internal/fields TestHeaders", "decide.json": "internal/local TestDecisionsAreThoseOfTheServer",
	"table.json": "httplimit TestTable", "ip.json": "TestAddresses", "keys.json": "TestKeys", "breaker.json": "TestBreaker",
	"cache.json": "TestCache", "errors.json": "TestErrors", "share.json": "TestShares", "wire.json": "TestWire",
}

func TestEveryFileIsRead(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, err)
	for _, f := range files {
		require.Contains(t, known, filepath.Base(f), "no test reads this file")
	}
	require.Len(t, files, len(known))
}

// read returns the vectors of a file.
func read[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	var file struct{ Vectors []T }
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Vectors)
	return file.Vectors
}

func TestAddresses(t *testing.T) {
	for _, v := range read[struct {
		Name           string
		Hops, V6Prefix int
		Networks       []string
		Peer           string
		Forwarded      []string
		Key            string
		Error          bool
	}](t, "ip.json") {
		a := rules.Addresses{Hops: v.Hops, V6Prefix: v.V6Prefix}
		for _, n := range v.Networks {
			a.Networks = append(a.Networks, netip.MustParsePrefix(n))
		}
		key, err := a.Key(v.Peer, v.Forwarded)
		require.Equal(t, v.Key, key, v.Name)
		require.Equal(t, v.Error, err != nil, v.Name)
	}
}

// FuzzAddresses: with one trusted hop the key is what the proxy has appended, whatever a client sends.
func FuzzAddresses(f *testing.F) {
	f.Add("6.6.6.6")
	f.Add("6.6.6.6, [::1]:80,,\t7.7.7.7:9")
	f.Fuzz(func(t *testing.T, forged string) {
		a := rules.Addresses{Hops: 1}
		for _, lines := range [][]string{{forged + ", 198.51.100.7"}, {forged, "198.51.100.7"}} {
			key, err := a.Key("10.0.0.2:80", lines)
			require.NoError(t, err)
			require.Equal(t, "198.51.100.7", key)
		}
		a.Hops = 0
		key, err := a.Key("10.0.0.2:80", []string{forged})
		require.NoError(t, err)
		require.Equal(t, "10.0.0.2", key)
	})
}

func TestKeys(t *testing.T) {
	for _, v := range read[struct {
		Name   string
		Parts  []string
		Secret bool
		Key    string
		Limits string
		States []string
	}](t, "keys.json") {
		key := v.Parts[0]
		switch {
		case v.Secret:
			key = rules.Digest(key)
		case len(v.Parts) > 1:
			key = rules.Combine(v.Parts...)
		}
		key = rules.Bounded(key)
		require.Equal(t, v.Key, key, v.Name)
		for i, state := range v.States {
			require.Equal(t, state, rules.StateKey(v.Limits, key, i+1), v.Name)
		}
	}
}

// TestNames: these are the names that the server takes, too (policy.CheckName).
func TestNames(t *testing.T) {
	for _, name := range []string{"a", "API", "api.v1_x-2", strings.Repeat("n", 64)} {
		require.NoError(t, rules.CheckName(name), name)
	}
	for _, name := range []string{"", "a b", `a"b`, "a\r\nX: y", "a:b", "a#2", "ä", "a\x00", strings.Repeat("n", 65)} {
		require.ErrorIs(t, rules.CheckName(name), rules.ErrName, name)
	}
}

func TestBreaker(t *testing.T) {
	for _, v := range read[struct {
		Name  string
		Pause int64
		Steps []struct {
			At         int64
			Begin, End int
			Answer     string
			Outcome    rules.Outcome
			State      rules.State
		}
	}](t, "breaker.json") {
		var b rules.Breaker
		tickets := map[int]rules.Ticket{}
		for i, s := range v.Steps {
			now := time.UnixMilli(s.At)
			if s.Begin > 0 {
				ticket := b.Begin(now)
				tickets[s.Begin] = ticket
				require.Equal(t, s.Answer != "skip", ticket.Allowed, "%s: step %d", v.Name, i)
				require.Equal(t, s.Answer == "probe", ticket.Probe, "%s: step %d", v.Name, i)
			} else {
				b.End(tickets[s.End], now, s.Outcome, time.Duration(v.Pause)*time.Millisecond)
			}
			require.Equal(t, s.State, b.State(), "%s: step %d", v.Name, i)
		}
	}
	require.Equal(t, 800*time.Millisecond, rules.Pause(0))
	require.Equal(t, time.Second, rules.Pause(0.5))
}

func TestCache(t *testing.T) {
	for _, v := range read[struct {
		Name  string
		Most  int64
		Steps []struct {
			At                       int64
			Policy, Key, Class, Keep string
			Member                   string
			Mode                     rules.Mode
			TTL, Cost                int64
			Put, Hit                 []int64
		}
	}](t, "cache.json") {
		c := rules.NewCache(time.Duration(v.Most) * time.Millisecond)
		for i, s := range v.Steps {
			now := time.UnixMilli(s.At)
			r := rules.Request{Key: s.Key, Cost: s.Cost, Mode: s.Mode, TTL: time.Duration(s.TTL) * time.Millisecond}
			scope := rules.Scope{Policy: s.Policy, Key: s.Key, Class: s.Class, Keep: s.Keep, Member: s.Member}
			switch {
			case !r.Plain():
				require.Nil(t, s.Hit, "%s: step %d", v.Name, i)
			case s.Put != nil:
				c.Put(scope, s.Cost, decision(t, s.Put), now)
			default:
				d, ok := c.Get(scope, s.Cost, now)
				require.Equal(t, s.Hit != nil, ok, "%s: step %d", v.Name, i)
				if ok {
					require.Equal(t, decision(t, s.Hit), d, "%s: step %d", v.Name, i)
				}
			}
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	c, now := rules.NewCache(time.Second), time.UnixMilli(0)
	d := decision(t, []int64{1, 2, 0, 5000, 5000})
	for i := range 10_000 {
		c.Put(rules.Scope{Key: strconv.Itoa(i)}, 1, d, now)
	}
	_, ok := c.Get(rules.Scope{Key: "0"}, 1, now)
	require.True(t, ok, "it is used, so that another makes room")
	c.Put(rules.Scope{Key: "new"}, 1, d, now)
	require.Equal(t, 10_000, c.Len())
	_, ok = c.Get(rules.Scope{Key: "0"}, 1, now)
	require.True(t, ok)
	_, ok = c.Get(rules.Scope{Key: "1"}, 1, now)
	require.False(t, ok)
}

// decision returns the decision in a reply of five integers.
func decision(t *testing.T, five []int64) rules.Decision {
	t.Helper()
	list := make([]any, len(five))
	for i := range five {
		list[i] = five[i]
	}
	d, err := rules.Read(list)
	require.NoError(t, err)
	return d
}

func TestErrors(t *testing.T) {
	for _, v := range read[struct {
		Name, Reply    string
		Fault          rules.Fault
		Phase          rules.Phase
		ID             bool
		Verdict        rules.Verdict
		Failure, Retry bool
	}](t, "errors.json") {
		if v.Fault != "" {
			require.Equal(t, v.Retry, rules.Retries(v.Fault, v.ID), v.Name)
			continue
		}
		verdict, failure := rules.Judge(v.Reply, v.Phase, v.ID)
		require.Equal(t, v.Verdict, verdict, v.Name)
		require.Equal(t, v.Failure, failure, v.Name)
	}
}

func TestShares(t *testing.T) {
	for _, v := range read[struct {
		Clause           string
		Instances, Limit int64
		Share, Local     string
	}](t, "share.json") {
		c, err := rules.ParseClause(v.Clause, time.Second)
		require.NoError(t, err)
		shared := c.Share(v.Instances)
		require.Equal(t, v.Share, shared.String(), v.Clause)
		require.Equal(t, v.Local, shared.Local().String(), v.Clause)
		require.Equal(t, v.Limit, shared.Local().MostUnits(), v.Clause)
		again, err := rules.ParseClause(shared.String(), time.Second)
		require.NoError(t, err)
		require.Equal(t, v.Share, again.String())
	}
}

func TestClauseErrors(t *testing.T) {
	for _, text := range []string{
		"", " ", "XX 1 2 3", "TB", "TB 1 2", "TB x 1 1", "TB -1 1 1", "TB 1 0 1", "TB 1 1 0", "TB 1 1 -1", "TB 1 1 s", "TB 1 1 1w",
		"TB 1 1 9223372036854775807", "TB 1 1 DAY", "SW 1", "SW 1 HOUR", "CL -2 1 1", "CC 1 MONTH", "NONE 1", "TB 99999999999999999999 1 1",
	} {
		_, err := rules.ParseClause(text, time.Second)
		require.ErrorIs(t, err, rules.ErrClause, text)
	}
}

func TestWire(t *testing.T) {
	for _, v := range read[struct {
		Name, Policy, Class, Keep, Do, Key string
		Limits                             []string
		Cost, TTL                          int64
		Mode                               rules.Mode
		Member, ID                         string
		Words                              []string
		Error                              bool
		Reply                              any
		Result                             *struct {
			Allowed, Never, Blocked bool
			Limit, Remaining        int64
			RetryAfter, ResetAfter  *int64
			Clauses                 int
		}
	}](t, "wire.json") {
		c := rules.Config{Policy: v.Policy, Class: v.Class, Keep: v.Keep}
		for _, text := range v.Limits {
			clause, err := rules.ParseClause(text, time.Second)
			require.NoError(t, err)
			c.Limits = append(c.Limits, clause)
		}
		r := rules.Request{Key: v.Key, Cost: v.Cost, Mode: v.Mode, Member: v.Member, ID: v.ID, TTL: time.Duration(v.TTL) * time.Millisecond}
		var words []string
		var err error
		switch v.Do {
		case "call":
			words, err = c.Words(r)
		case "start":
			words = c.Start(v.Member)
		case "commit":
			words = c.Settle(r, v.Cost)
		case "cancel":
			words = c.Settle(r, -1)
		case "renew":
			words = c.Renew(r)
		case "read":
			var d rules.Decision
			if d, err = rules.Read(integers(v.Reply)); err == nil {
				require.Equal(t, v.Result.Allowed, d.Allowed(), v.Name)
				require.Equal(t, v.Result.Never, d.Never(v.Cost), v.Name)
				require.Equal(t, v.Result.Blocked, d.Blocked(v.Cost), v.Name)
				require.Equal(t, []int64{v.Result.Limit, v.Result.Remaining}, []int64{d.Limit, d.Remaining}, v.Name)
				require.Equal(t, v.Result.RetryAfter, some(d.RetryAfter), v.Name)
				require.Equal(t, v.Result.ResetAfter, some(d.ResetAfter), v.Name)
				require.Len(t, d.Clauses, v.Result.Clauses, v.Name)
			}
		default:
			require.Fail(t, "unknown", v.Do)
		}
		require.Equal(t, v.Error, err != nil, v.Name)
		require.Equal(t, strings.Join(v.Words, " "), strings.Join(words, " "), v.Name)
	}
}

// some returns a time in milliseconds, or nil if there is none.
func some(d time.Duration) *int64 {
	if d == rules.None {
		return nil
	}
	n := d.Milliseconds()
	return &n
}

// integers returns a reply with its numbers as int64, as clients have them.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	}
	return v
}
