package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
)

// TestUseWaitsForSeveralPoliciesOverAStoreAsEmbedded draws calls under several policies that wait, and others, and plays them
// on a server with a keyspace and on one with a store: the replies, their instants, bans, notices and what is counted are the
// same.
func TestUseWaitsForSeveralPoliciesOverAStoreAsEmbedded(t *testing.T) {
	effort.Alone(t)
	users := []string{
		"SW 3 7 FIXED ANCHOR FIRST", "SW 3 7 LOG BAN 3 20 30", "TB 4 1 3", "TB 4 1 3 BAN 2 20 15 FACTOR 2", "CC 2 9 SW 6 11 FIXED",
		"TB 5 1 2 INTERVAL SW 5 9 BAN 2 10 5",
	}
	teams := []string{"SW 6 7 FIXED ANCHOR FIRST", "TB 9 1 2 BAN 4 20 12", "SW 8 9 LOG TB 9 1 1", "CC 3 9", "CC 4 7 TB 7 1 1 BAN 2 30 10"}
	var p played
	for seed := range effort.Steps(20, 2000) {
		rnd := rand.New(rand.NewPCG(6, uint64(seed)))
		setup := []string{
			"RL.POLICY SET user NOTIFY 80% CLASS low KEEP 50% LIMITS " + users[rnd.IntN(len(users))],
			"RL.POLICY SET team NOTIFY 90% CLASS low KEEP 25% LIMITS " + teams[rnd.IntN(len(teams))],
			"RL.POLICY SET quiet SHADOW NOTIFY 50% CLASS low KEEP 0% LIMITS SW 3 5 LOG CC 2 7",
		}
		for _, more := range []string{
			"RL.POLICY TRY team LIMITS SW 2 9", "RL.EXEMPT user d", "RL.OVERRIDE SET user c LIMITS NONE",
			"RL.OVERRIDE SET team x LIMITS CC 2 5 SW 5 9 LOG BAN 2 9 9", "RL.BOOST user b 2 EX 1000", "RL.BLOCK team y EX 20",
		} {
			if rnd.IntN(3) == 0 {
				setup = append(setup, more)
			}
		}
		looks := []string{"RL.POLICY GET user", "RL.POLICY GET team", "RL.POLICY GET quiet"}
		for _, u := range "abcd" {
			looks = append(looks, fmt.Sprintf("RL.USE user %c PEEK MEMBER new WITHDETAILS MS", u), fmt.Sprintf("RL.USE quiet %c PEEK MEMBER new WITHDETAILS MS", u))
		}
		looks = append(looks, "RL.USE team x PEEK MEMBER new WITHDETAILS MS", "RL.USE team y PEEK MEMBER new WITHDETAILS MS")
		p.playAsEmbedded(t, rnd, setup, severalWaitingCall, looks...)
	}
	p.enough(t)
	require.Positive(t, p.told)
}

// severalWaitingCall draws a call of client c. The keys of calls that may pass at one instant are such that those which
// charge the same state wait in the same queue, so that their order is known.
func severalWaitingCall(rnd *rand.Rand, c int) string {
	user := "aaabbcd"[rnd.IntN(7)]
	team := map[byte]string{'a': "x", 'b': "x", 'c': "y", 'd': "y"}[user]
	quantity := func() string {
		switch n := rnd.IntN(12); n {
		case 0:
			return " 0"
		case 1:
			return " -1"
		case 2:
			return ""
		default:
			return fmt.Sprintf(" %d", 1+n%3)
		}
	}
	parts := []string{fmt.Sprintf("user %c%s", user, quantity())}
	if rnd.IntN(4) > 0 {
		parts = append(parts, "team "+team+quantity())
	}
	if rnd.IntN(2) == 0 {
		parts = append(parts, fmt.Sprintf("quiet %c%s", user, quantity()))
	}
	rnd.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	if rnd.IntN(50) == 0 { // those that wait keep their limits
		return fmt.Sprintf("RL.POLICY SET user CLASS low KEEP 50%% LIMITS SW %d 9 FIXED ANCHOR FIRST", 2+rnd.IntN(4))
	}
	words := "RL.USE " + strings.Join(parts, " AND ")
	options := fmt.Sprintf(" MEMBER m%d", c)
	switch rnd.IntN(14) {
	case 0:
		return "RL.RESET team " + team
	case 1:
		return fmt.Sprintf("CC.RELEASE team:%s m%d", team, c)
	case 2:
		return fmt.Sprintf("CC.RELEASE user:%c m%d", user, c)
	case 3:
		return fmt.Sprintf("RL.USE user %c -2 AND team %s -2%s", user, team, options)
	case 4:
		return words + options
	case 5:
		return fmt.Sprintf("DEL user:%c", user)
	case 6:
		options = " CLASS low" + options
	}
	if rnd.IntN(3) > 0 {
		options += " WITHDETAILS"
	}
	if rnd.IntN(3) == 0 {
		return words + options + " BLOCK 0"
	}
	return words + options + fmt.Sprintf(" MS BLOCK %d", 1000*rnd.IntN(20)+1+rnd.IntN(90))
}
