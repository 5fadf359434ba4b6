package limiters_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/stats"
)

// seenBy starts a server for calls of one client. Each call is a batch of its own.
func seenBy(t *testing.T, options ...string) (*inproc.Session, func(call string)) {
	t.Helper()
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9), options...)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s, func(call string) {
		_, err := s.Do(strings.Fields(call)...)
		require.NoError(t, err)
	}
}

// TestTheMostDeniedKeySaysWhoCallsItAndHow: the report on a denied key has the command, its
// arguments, since when and how often a second it is denied, and the retry time of the reply.
func TestTheMostDeniedKeySaysWhoCallsItAndHow(t *testing.T) {
	s, do := seenBy(t)
	now := s.Server().Clock.Now()
	for range 41 {
		do("CL.THROTTLE api:acme 0 1 60 1")
	}
	seen := s.Server().Engine().Seen.Denied(now)
	require.Len(t, seen.Keys, 1)
	k := seen.Keys[0]
	require.Equal(t, "api:acme", k.Key)
	require.Equal(t, stats.SeenCall{Command: "cl.throttle", Args: "0 1 60 1", Limit: len("0 1 60"), RetryAfter: time.Minute}, k.SeenCall)
	require.Equal(t, []int64{1}, k.Clients)
	require.Equal(t, now, k.First)
	require.InDelta(t, 40, k.PerSecond, 0)
	require.InDelta(t, 40, seen.PerSecond, 0)
	require.EqualValues(t, 40, k.Count)

	called := s.Server().Engine().Seen.Called(now)
	require.Len(t, called.Keys, 1)
	require.Positive(t, called.Keys[0].PerSecond, "the first call of a worker is noted")
}

// TestWordsOfSeenCalls: the noted arguments of each family are bounded and do not identify the
// caller.
func TestWordsOfSeenCalls(t *testing.T) {
	for call, want := range map[string]stats.SeenCall{
		"SW.ALLOW g:k 1 60 1 FIXED":                                {Command: "sw.allow", Args: "1 60 1 FIXED", Limit: 4, RetryAfter: 40 * time.Second},
		"TB.ACQUIRE g:k 1 1 60 1":                                  {Command: "tb.acquire", Args: "1 1 60 1", Limit: 6, RetryAfter: time.Minute},
		"RL.MULTI 1 g:k CL 0 1 60":                                 {Command: "rl.multi", Args: "CL 0 1 60", Limit: 9, RetryAfter: time.Minute},
		"RL.MULTI 1 g:k CL 0 1 60000 MS":                           {Command: "rl.multi", Args: "CL 0 1 60000 MS", Limit: 15, RetryAfter: time.Minute},
		"CL.THROTTLE g:k 0 1 60 " + strings.Repeat("0", 100) + "1": {Command: "cl.throttle", Args: "0 1 60 " + strings.Repeat("0", 41), Limit: 6, RetryAfter: time.Minute},
	} {
		s, do := seenBy(t)
		do(call)
		do(call)
		keys := s.Server().Engine().Seen.Denied(s.Server().Clock.Now()).Keys
		require.Len(t, keys, 1, call)
		require.Equal(t, want, keys[0].SeenCall, call)
	}
	s, do := seenBy(t)
	do("CC.ACQUIRE g:k 1 60 one")
	do("CC.ACQUIRE g:k 1 60 another")
	keys := s.Server().Engine().Seen.Denied(s.Server().Clock.Now()).Keys
	require.Len(t, keys, 1)
	require.Equal(t, "1 60", keys[0].Args)
	s, do = seenBy(t)
	do("RL.MULTI 1 g:k CC 1 60 MEMBER one PEEK")
	do("RL.MULTI 1 g:k CC 1 60000 MEMBER one MS")
	do("RL.MULTI 1 g:k CC 1 60000 MEMBER another MS")
	keys = s.Server().Engine().Seen.Denied(s.Server().Clock.Now()).Keys
	require.Len(t, keys, 1)
	require.Equal(t, "CC 1 60000 MS", keys[0].Args)
}

// TestGroupsAreSeenOnce: the calls and denied keys of a group are reported once, by the next
// take.
func TestGroupsAreSeenOnce(t *testing.T) {
	s, do := seenBy(t)
	seen := s.Server().Engine().Seen
	for i := range 320 {
		do(fmt.Sprintf("CL.THROTTLE api:%d 0 1 60", i%100))
	}
	for range 160 {
		do("TB.ACQUIRE login:a 5 1 60 1")
	}
	do("CL.THROTTLE plain 0 1 60")
	do("CL.THROTTLE plain 0 1 60")
	groups := seen.TakeGroups()
	require.Len(t, groups, 3)
	require.Equal(t, stats.NoGroup, groups[0].Name)
	api, login := groups[1], groups[2]
	require.Equal(t, "api", api.Name)
	require.InDelta(t, 100, api.Denied.Estimate(), 25)
	require.Len(t, api.Calls, 1)
	require.Equal(t, "0 1 60", api.Calls[0].Args)
	require.InDelta(t, 320, api.Calls[0].Count, 300, "each 16th call at random counts for 16")
	require.Equal(t, "login", login.Name)
	require.EqualValues(t, 1, login.Denied.Estimate())
	require.Empty(t, seen.TakeGroups())
	require.Empty(t, seen.TakeGroups())
}

// TestGroupsThatAreSeenAreBounded: the number of groups stays bounded whatever keys a client
// sends.
func TestGroupsThatAreSeenAreBounded(t *testing.T) {
	s, do := seenBy(t)
	for i := range 2000 {
		do(fmt.Sprintf("CL.THROTTLE %d:k -1 1 60", i))
	}
	groups := s.Server().Engine().Seen.TakeGroups()
	require.LessOrEqual(t, len(groups), 256)
	other := 0
	for _, g := range groups {
		if g.Name == stats.OtherGroups {
			other++
		}
	}
	require.Equal(t, 1, other)
}

// TestGroupsSayWhoLacksMemory: a refusal for lack of memory counts for the group of its key.
func TestGroupsSayWhoLacksMemory(t *testing.T) {
	s, do := seenBy(t, "--maxmemory", "1mb")
	for i := range 40_000 {
		do(fmt.Sprintf("CL.THROTTLE fill:%d 100 1 60", i))
	}
	found := false
	for _, g := range s.Server().Engine().Seen.TakeGroups() {
		if g.Name == "fill" {
			found = g.Refused > 0
		}
	}
	require.True(t, found)
}

// TestNoPlaceInPipelinesIsPreferred: sixteen keys that are called in turn, in pipelines of
// sixteen, get about equal counts.
func TestNoPlaceInPipelinesIsPreferred(t *testing.T) {
	const rounds = 1600
	s, err := inproc.Feed(limit.Instant(1_700_000_000e9))
	require.NoError(t, err)
	defer s.Close()
	var pipeline []byte
	for i := range 16 {
		pipeline = inproc.Encode(pipeline, "CL.THROTTLE", fmt.Sprintf("key%d", i), "100000", "1", "1")
	}
	for range rounds {
		_, err := s.Send(pipeline)
		require.NoError(t, err)
	}
	// The sampling error of each count is at most 4*sqrt(1600) = 160. Keys that share a slot show
	// less.
	right := 0
	for _, k := range s.Server().Engine().Seen.Called(s.Server().Clock.Now()).Keys {
		require.Less(t, k.Count, int64(rounds+6*160), k.Key)
		if k.Count > rounds-6*160 {
			right++
		}
	}
	require.GreaterOrEqual(t, right, 8)
}
