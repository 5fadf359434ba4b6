package loadgen_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/tools/bench/loadgen"
	"github.com/cellserver/cellserver/tools/bench/loadgen/fakeresp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRefusalsFollowEnoughGrants sends random traffic to every limiter. Whenever the limiter
// refuses, it has granted at least the owed units within the spell before, and the check of the
// whole run finds no fault.
func TestRefusalsFollowEnoughGrants(t *testing.T) {
	const start = limit.Instant(1_700_000_000 * time.Second)
	rapid.Check(t, func(t *rapid.T) {
		text, decide := anyLimiter(t)
		l := limitOf(t, text, loadgen.Shape{MinQuantity: 1, MaxQuantity: 6})
		if l.Spell() == 0 {
			t.Skip("nothing is owed")
		}
		type grant struct {
			at    limit.Instant
			units int64
		}
		var grants []grant
		now := start.Add(time.Duration(rapid.Int64Range(0, 5e9).Draw(t, "offset")))
		for range rapid.IntRange(1, 120).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.OneOf(
				rapid.Just(int64(0)), rapid.Int64Range(0, 50e6), rapid.Int64Range(0, 2e9),
			).Draw(t, "pause")))
			quantity := rapid.Int64Range(1, 6).Draw(t, "quantity")
			units := decide(now, quantity)
			if units > 0 {
				grants = append(grants, grant{now, units})
			}
			if units == quantity {
				continue
			}
			sum := int64(0)
			for _, g := range grants {
				if now.Sub(g.at) <= l.Spell() {
					sum += g.units
				}
			}
			require.GreaterOrEqual(t, sum, l.Owed(quantity), "%s refused %d", text, quantity)
		}
	})
}

// asking sends a command over one connection, ten times a second for the given span, to a server
// whose clock is slower than the generator's by the factor slowness.
func asking(t *testing.T, text string, decide limiter, l *loadgen.Limit, slowness int64, span time.Duration) loadgen.Check {
	t.Helper()
	o := load(t, text)
	o.Rate, o.Duration = 10, span
	b := loadgen.NewBench(o)
	for now := time.Duration(0); now < span; now += 10 * time.Millisecond {
		b.Send(now)
		for range b.Waiting() {
			refused := 1 - decide(limit.Instant(1_700_000_000*time.Second).Add(now/time.Duration(slowness)), 1)
			require.NoError(t, b.Reply(now+time.Millisecond, fakeresp.Five(refused, l.Most, 0, -1, 0)))
		}
	}
	return b.Result(o, span).Checks[0]
}

func TestUnderAdmissionIsCaught(t *testing.T) {
	for kind := range limiterKinds {
		draw := rapid.Custom(func(t *rapid.T) [2]any {
			text, decide := limiterOf(t, kind)
			return [2]any{text, decide}
		})
		for seed := range 10 {
			drawn := draw.Example(seed)
			text := drawn[0].(string)
			l := limitOf(t, text, one)
			if l.Spell() == 0 || l.Most == 1 {
				continue
			}
			span := 20*l.Spell() + time.Second
			if bound, _ := l.Bound(span); bound > int64(span/time.Second)*5 {
				continue // it hardly refuses ten a second
			}
			if l.Spell() > time.Hour {
				continue // a window of a calendar: a run of that span takes minutes
			}
			t.Run(fmt.Sprint(text, seed), func(t *testing.T) {
				sound := asking(t, text, drawn[1].(limiter), l, 1, span)
				require.False(t, sound.Violated(), sound)
				require.Equal(t, 1, sound.Pressed, sound)
				require.Contains(t, sound.String(), "the least that refusals need")
				slow := asking(t, text, draw.Example(seed)[1].(limiter), l, 8, span)
				require.True(t, slow.Violated(), slow)
				require.Contains(t, slow.String(), "its refusals need")
			})
		}
	}
}

func TestSomeLimitsRefuseWithoutGrants(t *testing.T) {
	for _, text := range []string{
		"CL.THROTTLE k -1 30 60", "CL.THROTTLE k 5 -30 60", "SW.ALLOW k 5 1 PENALIZE", "SW.ALLOW k 5 1 BLOCK 1",
		"SW.ALLOW k 5 1 BUCKETS 5 EVEN", "SW.ALLOW k 5 1 FORCE", "TB.ACQUIRE k 5 1 1 INIT 0", "TB.ACQUIRE k 5 1 1 WAIT 1",
		"TB.ACQUIRE k 5 1 1 DEBT", "TB.ACQUIRE k 5 1 1 WARMUP 2", "TB.ACQUIRE k 5 1 1 FORCE", "CC.ACQUIRE k 5 1 m{seq}",
	} {
		require.Zero(t, limitOf(t, text, one).Spell(), text)
	}
}

// TestRefusalsWithoutEnoughGrantsAreFound lists refusals of one key with the limit 2 and one unit
// per second, so that a refusal requires grants of 2 units within the two seconds before.
func TestRefusalsWithoutEnoughGrantsAreFound(t *testing.T) {
	o := load(t, "CL.THROTTLE k 1 1 1")
	o.Rate, o.Duration = 1, time.Hour
	yes, no := fakeresp.Five(0, 2, 0, -1, 1), fakeresp.Five(1, 2, 0, 1, 2)
	for _, c := range []struct {
		name                     string
		replies                  string
		shared                   bool
		pressed, short, unserved int
	}{
		{"sound", "++-+-+-+-+-", false, 1, 0, 0},
		{"refused without a reason", "++------", false, 1, 1, 0},
		{"others had it", "++------", true, 0, 0, 0},
		{"never granted", "--------", false, 0, 0, 1},
		{"too short to say anything", "----", false, 0, 0, 0},
		{"an earlier limit refused at first", "------++-+-", false, 1, 0, 0},
		{"and then it is this one", "------++------", false, 1, 1, 0},
	} {
		o.SharedKeys = c.shared
		b := loadgen.NewBench(o)
		for i, r := range c.replies {
			now := time.Duration(i) * time.Second
			b.Send(now)
			reply := yes
			if r == '-' {
				reply = no
			}
			require.NoError(t, b.Reply(now+1, reply))
		}
		check := b.Result(o, time.Duration(len(c.replies))*time.Second).Checks[0]
		require.Equal(t, []int{c.pressed, c.short, c.unserved}, []int{check.Pressed, check.Short, check.Unserved}, c.name)
	}
}
