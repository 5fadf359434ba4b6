package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestSlotOfAKeyIsThatOfItsTag(t *testing.T) {
	whole := func(s string) int { return int(crc16(0, s)) % slots }
	require.Equal(t, 12739, whole("123456789"), "as the specification of clusters says")
	require.Equal(t, 12182, whole("foo"))
	for key, hashed := range map[string]string{
		"a":                    "p:a",
		"{user1000}.following": "user1000",
		"foo{}{bar}":           "p:foo{}{bar}",
		"foo{{bar}}zap":        "{bar",
		"foo{bar}{zap}":        "bar",
		"foo{bar":              "p:foo{bar",
		"foo}bar{":             "p:foo}bar{",
		"":                     "p:",
	} {
		require.Equal(t, whole(hashed), slotOf("p:", []byte(key)), key)
	}
}

func TestBreakerOpensAfterFiveFailuresInARowOrHalfOfTwenty(t *testing.T) {
	for name, test := range map[string]struct {
		results string // + and -, and the result that opens it last
		open    bool
	}{
		"five in a row":           {"+++-----", true},
		"four in a row":           {"----+----+", false},
		"half of twenty":          {strings.Repeat("+-", 10), true},
		"half of nineteen":        {strings.Repeat("+-", 9) + "+", false},
		"less than half":          {strings.Repeat("++-", 20), false},
		"as many as there are ok": {strings.Repeat("+", 50), false},
	} {
		t.Run(name, func(t *testing.T) {
			var told []bool
			br := newBreaker(func(open bool, why string) {
				told = append(told, open)
				require.Equal(t, Timeout, why)
			})
			for i, r := range test.results {
				require.Nil(t, br.closedTo(), "after %d", i)
				report, ok := br.allow()
				require.True(t, ok)
				if r == '+' {
					report(nil)
				} else {
					report(&Error{Reason: Timeout})
				}
			}
			if !test.open {
				require.Nil(t, br.closedTo())
				require.Empty(t, told)
				return
			}
			require.Equal(t, []bool{true}, told)
			require.Equal(t, Timeout, br.closedTo().Reason)
			require.True(t, br.closedTo().NotDone)
			_, ok := br.allow()
			require.False(t, ok)
		})
	}
}

func TestInspectionWarnsOfWhatLosesLimits(t *testing.T) {
	for name, test := range map[string]struct {
		info, version string
		warnings      []string
	}{
		"all is well":        {"redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nconnected_slaves:0\r\n", "Redis 7.0.15", nil},
		"Valkey":             {"redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n", "Valkey 8.0.1", nil},
		"evicts":             {"redis_version:7.0.15\r\nmaxmemory_policy:volatile-ttl\r\n", "Redis 7.0.15", []string{"maxmemory-policy is volatile-ttl"}},
		"acknowledges alone": {"redis_version:7.0.15\r\nconnected_slaves:1\r\n", "Redis 7.0.15", []string{"min-replicas-to-write"}},
		"waits for replicas": {"redis_version:7.0.15\r\nconnected_slaves:1\r\nmin_slaves_good_slaves:1\r\n", "Redis 7.0.15", nil},
		"old":                {"redis_version:5.0.14\r\n", "Redis 5.0.14", []string{"not tested below"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := inspectInfo(test.info)
			require.Equal(t, test.version, is.version)
			require.Len(t, is.warnings, len(test.warnings))
			for i, w := range test.warnings {
				require.Contains(t, is.warnings[i], w)
			}
		})
	}
}

func TestReachableIsSeenFromWhereItWasAsked(t *testing.T) {
	for _, test := range [][3]string{
		{"10.0.0.1:7000", "h:1", "10.0.0.1:7000"},
		{":7000", "h:1", "h:7000"},
		{"?:7000", "h:1", "h:7000"},
		{"127.0.0.1:7000", "h:1", "h:7000"},
		{"[::1]:7000", "h:1", "h:7000"},
		{"127.0.0.1:7000", "127.0.0.1:1", "127.0.0.1:7000"},
		{"127.0.0.1:7000", "localhost:1", "127.0.0.1:7000"},
		{"odd", "h:1", "odd"},
	} {
		require.Equal(t, test[2], reachable(test[0], test[1]), test[0])
	}
}

func TestKeepIsRoundedUp(t *testing.T) {
	for d, ms := range map[time.Duration]int64{-1: 1, 0: 1, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000} {
		require.Equal(t, ms, milliseconds(d), d)
	}
}

// TestTopologyOfACluster reads ranges in any order, and ignores invalid ones.
func TestTopologyOfACluster(t *testing.T) {
	at := func(addr string) []redis.ClusterNode { return []redis.ClusterNode{{Addr: addr}, {Addr: "replica:1"}} }
	top, err := clusterOf([]redis.ClusterSlot{
		{Start: 8000, End: 16383, Nodes: at("b:1")},
		{Start: 0, End: 99, Nodes: at("a:1")},
		{Start: 200, End: 299, Nodes: at("a:1")},
		{Start: 300, End: 99999, Nodes: at("c:1")},
		{Start: -1, End: 5, Nodes: at("c:1")},
		{Start: 400, End: 500},
	}, "x:1")
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b:1"}, top.masters)
	for slot, want := range map[int]int16{0: 0, 99: 0, 100: -1, 250: 0, 450: -1, 7999: -1, 8000: 1, 16383: 1} {
		require.Equal(t, want, top.slots[slot], slot)
	}
	_, err = clusterOf(nil, "x:1")
	require.ErrorContains(t, err, "no slots yet")
}

// TestGuardFollowsRepliesInAnyPieces splits a stream of valid replies, whose strings look like
// heads, at every index.
func TestGuardFollowsRepliesInAnyPieces(t *testing.T) {
	stream := []byte("+OK\r\n:1\r\n$-1\r\n*-1\r\n$0\r\n\r\n*2\r\n$15\r\n$999999999999\r\n\r\n:5\r\n-ERR x\r\n$1\r\n\n\r\n:2\r\n")
	for first := range stream {
		for second := first; second < len(stream); second++ {
			g := guard(nil)
			require.NoError(t, g.look(stream[:first]))
			require.NoError(t, g.look(stream[first:second]))
			require.NoError(t, g.look(stream[second:]))
			require.Zero(t, g.skip)
			require.Empty(t, g.line)
			require.Empty(t, g.open)
		}
	}
	for _, s := range []string{"$16777217\r\n", "*131073\r\n", "\r\n", "\n", "x\r\n", "$\r\n", "$1\n", "$1x\r\n", "%1\r\n", "*-2\r\n", strings.Repeat("x", maxLine+1)} {
		require.ErrorIs(t, guard(nil).look([]byte(s)), errReply, "%.20q", s)
	}
}

// TestGuardBoundsArraysWithinArrays: the client library allocates memory for each announced array,
// and recurses for each nested one.
func TestGuardBoundsArraysWithinArrays(t *testing.T) {
	for _, head := range []string{"*1\r\n", "*131072\r\n", "*2\r\n*0\r\n"} {
		g := guard(nil)
		require.NoError(t, g.look([]byte(strings.Repeat(head, maxNested))))
		require.ErrorIs(t, g.look([]byte(head)), errReply)
	}
	g := guard(nil)
	flat := "*2\r\n*3\r\n*-1\r\n$1\r\nx\r\n*1\r\n:1\r\n*0\r\n"
	require.NoError(t, g.look([]byte(strings.Repeat(flat, 1000))), "one after the other they may be many")
	require.Empty(t, g.open)
}
