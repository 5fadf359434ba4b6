package limiters_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
)

// TestASettlementIsNoDecision: the statistics of keys count a reservation as one call, and what settles it
// as none.
func TestASettlementIsNoDecision(t *testing.T) {
	s, do := seenBy(t)
	do("TB.ACQUIRE k 10 10 60 6 RESERVE a 30")
	do("RL.RENEW k a 40")
	do("RL.COMMIT k a 3")
	for range 100 {
		do("RL.COMMIT k a 3")
		do("RL.CANCEL k nosuch")
	}
	keys := command.Find[ratelimit.Service](&s.Server().Engine().Server).Keys
	calls := int64(0)
	for _, n := range keys.Groups().Snapshot() {
		calls += n.Calls
		require.Zero(t, n.Denied)
	}
	require.EqualValues(t, 1, calls)
	require.Equal(t, hotkeys.Reservations{Made: 1, Committed: 1, Unknown: 100}, keys.Reservations())
	called := s.Server().Engine().Seen.Called(s.Server().Clock.Now()).Keys
	require.Len(t, called, 1)
	require.EqualValues(t, 1, called[0].Count)
}

// TestAWaitCountsTheReservationsThatItEnds: a call with BLOCK that waits or passes at once ends reservations
// like every call, and each of them is counted once.
func TestAWaitCountsTheReservationsThatItEnds(t *testing.T) {
	for _, block := range []string{"SW.ALLOW k 10 60 1 FIXED BLOCK 1", "SW.ALLOW k 10 60 11 FIXED BLOCK 1"} {
		s, do := seenBy(t)
		do("SW.ALLOW k 10 60 4 FIXED RESERVE a 1")
		do("SW.ALLOW k 10 60 4 FIXED RESERVE b 1")
		s.Server().Clock.Advance(2 * time.Second)
		do(block)
		do("SW.ALLOW k 10 60 1 FIXED")
		n := command.Find[ratelimit.Service](&s.Server().Engine().Server).Keys.Reservations()
		require.Equal(t, hotkeys.Reservations{Made: 2, Expired: 2}, n, block)
	}
}

// TestACancellationGivesNothingTwice: sixty calls of an hour hold the whole bucket in turn and fail at its end.
// With a negative quantity for each of them, 6,100 units pass at one instant, and with RESERVE 100.
func TestACancellationGivesNothingTwice(t *testing.T) {
	passed := func(option string, giveBack func(id string) string) (units int) {
		s, _ := seenBy(t)
		do := func(words string) string {
			reply, err := s.Do(strings.Fields(words)...)
			require.NoError(t, err)
			return string(reply)
		}
		for i := range 60 {
			require.Equal(t, inproc.Five(0, 100, 0, -1, 60), do(fmt.Sprintf("TB.ACQUIRE k 100 100 60 100 "+option, i)))
			s.Server().Clock.Advance(time.Minute)
		}
		for i := -1; i < 60; i++ {
			if i >= 0 {
				do(giveBack(strconv.Itoa(i)))
			}
			if strings.HasPrefix(do("TB.ACQUIRE k 100 100 60 100"), "*5\r\n:0\r\n") {
				units += 100
			}
		}
		return units
	}
	require.Equal(t, 6100, passed("ID %d", func(string) string { return "TB.ACQUIRE k 100 100 60 -100 FORCE" }))
	require.Equal(t, 100, passed("RESERVE %d 3601", func(id string) string { return "RL.CANCEL k " + id }))
}

// TestAReservationOfSeveralIsCountedOnce: of all keys of a reservation only one counts, also if a policy that
// cannot deny is one of several, or takes nothing.
func TestAReservationOfSeveralIsCountedOnce(t *testing.T) {
	s, do := seenBy(t)
	do("RL.POLICY SET shadow SHADOW LIMITS SW 10 60 FIXED TB 5 5 60")
	do("RL.POLICY SET tok LIMITS TB 100 100 60")
	do("RL.USE shadow k 2 AND tok k 2 RESERVE r1 10")
	do("RL.USE tok k 2 AND shadow k 2 RESERVE r2 10")
	do("RL.USE shadow k 6 AND tok k 6 RESERVE r3 10") // reserves nothing of shadow
	do("RL.USE shadow k 6 RESERVE r4 10")             // nothing at all
	do("RL.MULTI 2 a b SW 10 60 TB 5 5 60 RESERVE r5 10")
	do("RL.COMMIT k r1 1 POLICY shadow")
	do("RL.COMMIT k r4 1 POLICY shadow")
	s.Server().Clock.Advance(10 * time.Second)
	do("RL.USE shadow k 0 AND tok k 0")
	do("RL.COMMIT k r2 1 POLICY tok")
	do("RL.CANCEL a r5")
	do("RL.COMMIT k r3 1 POLICY shadow")
	n := command.Find[ratelimit.Service](&s.Server().Engine().Server).Keys.Reservations()
	require.Equal(t, hotkeys.Reservations{Made: 5, Committed: 2, Late: 2, Expired: 3}, n)
}
