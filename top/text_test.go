package top_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/report"
	"github.com/cellserver/cellserver/top"
)

// at is 02:47:12 on a day in 2026.
const at = int64(1_795_402_032_000)

func ptr(k report.Key) *report.Key { return &k }

// oneCaller is a snapshot of a server with one key that is called far too often.
func oneCaller() top.Snapshot {
	s := top.Snapshot{
		Overview: report.Overview{
			At: at, Server: report.Server{ID: "limiter-0:6379", Version: "0.9.0", UptimeS: 3_564_000, GroupBy: ":", MaxGroups: 100},
			Verdict: report.Verdict{
				Kind: report.OneCaller, Title: "The limiter works. One caller is over its limit.",
				Text: "Since 02:31 98 % of all denials are one key, api:acme-prod.", Key: ptr("api:acme-prod"), Group: ptr("api"), Change: 2, Mark: "B",
			},
			Checks: []report.Check{{ID: "p99", OK: true, Name: "Answers in time", Text: "p99 210 µs", Bound: "≤ 1 ms"}},
			Now:    report.Now{CallsS: 48_200, DeniedRatio: 0.119, UsualRatio: 0.002, P99us: 212, Clients: 412, Memory: 212 << 20, MaxMemory: 1 << 30, KeysDenied: 214},
		},
		Keys: []report.DeniedKey{
			{
				Key: "api:acme-prod", Group: "api", DeniedS: 5630, CallsS: 5730, Share: 0.98, Limit: "100/s", Since: at - 16*60e3,
				Clients: []report.Caller{{Name: "orders-svc", Lib: "lettuce 6.8.1"}, {Name: "orders-svc"}, {Name: "orders-svc"}},
			},
			{Key: "login:203.0.113.77", Group: "login", DeniedS: 41, CallsS: 44, Share: 0.007, Limit: "5/min", Since: at - 35*60e3},
		},
		Groups: []report.Group{
			{Group: "api", CallsS: 39_800, DeniedRatio: 0.143, Spark: []float64{-1, 0.002, 0.143}, KeysDenied: 31, TopShare: 0.99, NearRatio: 0.06, Limit: "100/s"},
			{Group: "webhook", CallsS: 500, DeniedRatio: 0.0001},
		},
		Changes: []report.Change{
			{ID: 1, At: at - 33*60e3, Mark: "A", Kind: "rewrite", Text: "BGREWRITEAOF 1.4 s", By: "automatic"},
			{ID: 2, At: at - 17*60e3, Mark: "B", Kind: "client", Text: "New library: lettuce 6.8.1, was 6.5.0", By: "3 clients", Around: &report.Around{Group: ptr("api"), Before: report.Period{CallsS: 92}, After: report.Period{CallsS: 5730}}},
		},
	}
	s.History = report.History{Step: 1, From: at - 60e3}
	for i := range int64(60) {
		s.History.Allowed = append(s.History.Allowed, 41_000+i*20)
		s.History.Denied = append(s.History.Denied, i*95)
	}
	return s
}

// TestBlankGroupsCanBeSeen: names that are empty or consist of spaces are quoted.
func TestBlankGroupsCanBeSeen(t *testing.T) {
	s := oneCaller()
	s.Groups = append(s.Groups, report.Group{Group: ""}, report.Group{Group: "  "})
	text := top.Text(&s, 120)
	require.Contains(t, text, "\n  \"\" ")
	require.Contains(t, text, "\n  \"  \" ")
}

// TestTextSaysTheVerdictFirst: a pipe gets the same text as a terminal, without styles.
func TestTextSaysTheVerdictFirst(t *testing.T) {
	s := oneCaller()
	require.Equal(t, `cellserver limiter-0:6379  0.9.0  up 41 d 6 h
▲ The limiter works. One caller is over its limit.  (denies)
  Since 02:31 98 % of all denials are one key, api:acme-prod.

  48.2k calls/s   12 % denied (usually 0.2 %)   p99 212 µs   412 clients   212 MiB of 1024 MiB
  Is the limiter sick? ✓ no, 1 of 1 checks pass

  calls/s, at most 47.8k  ▇▇▇▇▇▇▇▇████████████████████████████████████████████████████
  denied, at most 12 %     ▁▁▁▁▁▁▂▂▂▂▂▂▂▃▃▃▃▃▃▃▄▄▄▄▄▄▄▅▅▅▅▅▅▅▆▆▆▆▆▆▆▆▇▇▇▇▇▇▇▇█████████

Keys denied most · about 214 denied in 5 min
  key                                denied/s  of calls   share       limit  called by                           since
▶ api:acme-prod                          5630      98 %    98 %       100/s  orders-svc · lettuce 6.8.1 …        02:31
  login:203.0.113.77                       41      93 %   0.7 %       5/min  not connected                       02:12

Groups
  group                           calls/s   denied  1 h                   keys denied  top key  near limit       limit
▶ api                               39.8k     14 %   ▁█                            31     99 %       6.0 %       100/s
  webhook                             500   <0.1 %                                  0        –         0 %

Changes
      time         what                                             calls/s before and after  by
▶ B   02:30        New library: lettuce 6.8.1, was 6.5.0                    92 → 5730 of api  3 clients
  A   02:14        BGREWRITEAOF 1.4 s                                                         automatic
`, top.Text(&s, 120))
}

// TestReservationsAreALine: and so are repeated calls, if there were any.
func TestReservationsAreALine(t *testing.T) {
	s := oneCaller()
	require.NotContains(t, top.Text(&s, 120), "In 5 min:")
	s.Overview.Now.Repeats = 1
	require.Contains(t, top.Text(&s, 120), "  212 MiB of 1024 MiB\n  In 5 min: 1 repeated call\n  Is the limiter sick?")
	s.Overview.Now.Reservations = []report.Count{{Name: "made", N: 12_345}, {Name: "expired", N: 2}}
	require.Contains(t, top.Text(&s, 120), "\n  In 5 min: reservations 12.3k made, 2 expired   1 repeated call\n")
	s.Overview.Now.Repeats = 0
	require.Contains(t, top.Text(&s, 120), "\n  In 5 min: reservations 12.3k made, 2 expired\n")
}

// TestShortTimesAreMicroseconds: short times are shown in µs, and not as 0.00 ms.
func TestShortTimesAreMicroseconds(t *testing.T) {
	s := oneCaller()
	for us, want := range map[float64]string{0: "p99 0 µs", 0.4: "p99 0.4 µs", 9.9: "p99 9.9 µs", 48: "p99 48 µs", 999: "p99 999 µs", 999.7: "p99 1.00 ms", 4026: "p99 4.03 ms", 2.5e5: "p99 250 ms"} {
		s.Overview.Now.P99us = us
		require.Contains(t, top.Text(&s, 120), want+"   412 clients")
	}
}

// TestSickServerListsWhatFails: each failing check is a line with its value and its bound.
func TestSickServerListsWhatFails(t *testing.T) {
	s := oneCaller()
	s.Overview.Verdict = report.Verdict{Kind: report.Memory, Sick: true, Title: "Sick: memory is full.", Text: "New keys are refused."}
	s.Overview.Checks = append(s.Overview.Checks, report.Check{ID: "memory", Name: "Memory", Text: "64 of 64 MiB", Bound: "≤ 80 %"})
	text := top.Text(&s, 100)
	require.Contains(t, text, "✕ Sick: memory is full.  (sick)\n")
	require.Contains(t, text, "Is the limiter sick? ✕ yes, 1 of 2 checks pass\n  ✕ Memory: 64 of 64 MiB (≤ 80 %)\n")
	s.Overview.Verdict = report.Verdict{Kind: report.Failing, Title: "The limiter works, but a check fails."}
	require.Contains(t, top.Text(&s, 100), "Is the limiter sick? ! no, 1 of 2 checks pass\n  ✕ Memory: 64 of 64 MiB (≤ 80 %)\n", "as the verdict says")
}

// TestNamesOfClientsCannotDriveTheTerminal: 7-bit and 8-bit control characters, bytes that are not
// UTF-8, and characters that change the direction of text, in every name.
func TestNamesOfClientsCannotDriveTheTerminal(t *testing.T) {
	const bad = "a\x1b]0;title\x07\u009b2J\u202eb\rc\nd\xff"
	s := oneCaller()
	s.Overview.Server.ID, s.Overview.Verdict.Title, s.Overview.Verdict.Text = bad, bad, bad
	s.Keys[0] = report.DeniedKey{Key: bad, Group: bad, Limit: "1/s", Clients: []report.Caller{{Name: bad, Lib: bad, Addr: bad}}}
	s.Groups[0].Group = bad
	s.Changes[0].Text, s.Changes[0].By = bad, bad
	s.Overview.Checks[0] = report.Check{Name: "Errors", Text: bad}
	text := top.Text(&s, 300)
	for _, r := range text {
		require.False(t, r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0) || r == '\u202e', "%q in %s", r, text)
	}
	require.Contains(t, text, `a\x1b]0;title\x07\u{009b}2J\u{202e}b\x0dc\x0ad\xff`)
}

// TestAskReadsAllReports: each report is one command, which includes the selection.
func TestAskReadsAllReports(t *testing.T) {
	want := oneCaller()
	var asked []string
	source := func(_ context.Context, args ...string) ([]byte, error) {
		asked = append(asked, strings.Join(args, " "))
		return json.Marshal(map[string]any{"OVERVIEW": want.Overview, "HISTORY": want.History, "KEYS": want.Keys, "GROUPS": want.Groups, "CHANGES": want.Changes}[args[1]])
	}
	got, err := top.Ask(context.Background(), source, top.Choice{Span: 3600, Calls: true, Group: "api"})
	require.NoError(t, err)
	require.Equal(t, want.Keys, got.Keys)
	require.Equal(t, want.Overview.Verdict, got.Overview.Verdict)
	require.Equal(t, []string{"RL.REPORT OVERVIEW", "RL.REPORT HISTORY SPAN 3600", "RL.REPORT KEYS BY calls COUNT 50 GROUP api", "RL.REPORT GROUPS", "RL.REPORT CHANGES"}, asked)

	_, err = top.Ask(context.Background(), func(context.Context, ...string) ([]byte, error) { return []byte("[]"), nil }, top.Choice{})
	require.ErrorContains(t, err, "reading the reply of RL.REPORT OVERVIEW")
	refused := errors.New("NOPERM")
	_, err = top.Ask(context.Background(), func(context.Context, ...string) ([]byte, error) { return nil, refused }, top.Choice{})
	require.ErrorIs(t, err, refused)
}

// TestAllServersAreAsked: if there are others, and the user has not chosen otherwise. The text says which are missing.
func TestAllServersAreAsked(t *testing.T) {
	want := oneCaller()
	want.Overview.Servers = []report.StoreServer{{Address: "a:1", Self: true}, {Address: "b:1", Sick: true, Verdict: "memory"}, {Address: "c:1"}}
	var asked []string
	source := func(_ context.Context, args ...string) ([]byte, error) {
		asked = append(asked, strings.Join(args[1:], " "))
		is := map[string]any{"OVERVIEW": want.Overview, "HISTORY": want.History, "KEYS": want.Keys, "GROUPS": want.Groups, "CHANGES": want.Changes}
		if args[len(args)-1] == "FLEET" {
			over := want.Overview
			over.Fleet = &report.Fleet{Servers: 2, Missing: 1, Now: report.FleetNow{CallsS: 99_000, DeniedRatio: 0.25, P99us: 800, Clients: 900, KeysDenied: 7}}
			is = map[string]any{"OVERVIEW": over, "HISTORY": want.History, "KEYS": report.FleetKeys{Keys: want.Keys[1:]}, "GROUPS": report.FleetGroups{Groups: want.Groups[1:]}}
		}
		return json.Marshal(is[args[1]])
	}
	got, err := top.Ask(context.Background(), source, top.Choice{Span: 300})
	require.NoError(t, err)
	require.Equal(t, []string{"OVERVIEW", "OVERVIEW FLEET", "HISTORY SPAN 300 FLEET", "KEYS BY denied COUNT 50 FLEET", "GROUPS FLEET", "CHANGES"}, asked)
	require.Equal(t, want.Keys[1:], got.Keys)
	text := top.Text(&got, 140)
	require.Contains(t, text, "  The verdict and the checks are about this server. The figures are the sum of 2 servers, 1 missing.\n  ✕ b:1 is sick: memory\n")
	require.Contains(t, text, "  99.0k calls/s   25 % denied   p99 800 µs   900 clients")
	require.Contains(t, text, "Keys denied most · at least 7 denied in 5 min · sum of 2 servers, 1 missing\n")
	require.Contains(t, text, "Groups · sum of 2 servers, 1 missing\n")
	got.Overview.Fleet.Late, got.Overview.Fleet.Error = 3, "the store\x1b is away"
	require.Contains(t, top.Text(&got, 140), `sum of 2 servers, 1 missing, 3 late (the store\x1b is away).`)

	asked = nil
	got, err = top.Ask(context.Background(), source, top.Choice{Span: 300, Own: true})
	require.NoError(t, err)
	require.Equal(t, []string{"OVERVIEW", "HISTORY SPAN 300", "KEYS BY denied COUNT 50", "GROUPS", "CHANGES"}, asked)
	require.Equal(t, want.Keys, got.Keys)
}

// TestEmptyServerHasText: a server without calls has a complete text.
func TestEmptyServerHasText(t *testing.T) {
	s := top.Snapshot{Overview: report.Overview{At: at, Verdict: report.Verdict{Kind: report.Idle, Title: "No client calls a limiter."}, Now: report.Now{UsualRatio: -1}}}
	text := top.Text(&s, 80)
	require.Contains(t, text, "– No client calls a limiter.  (idle)")
	require.Contains(t, text, "Groups\n  none has been called\n")
	for _, width := range []int{40, 41, 60, 200} {
		require.NotEmpty(t, top.Text(&s, width), fmt.Sprint(width))
	}
}
