package policies_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// setPolicy sets the limits of a policy, with options before LIMITS.
func setPolicy(n *node, name string, l *limits, options ...string) {
	words := append([]string{"RL.POLICY", "SET", name}, options...)
	if l.millis {
		words = append(words, "MS")
	}
	require.Equal(n.t, ok, n.do(append(append(words, "LIMITS"), l.words()...)...))
}

// like returns random limits of the same families as l, none with ANCHOR KEY.
func (d dice) like(l *limits) *limits {
	another := &limits{millis: l.millis}
	for i := range l.clauses {
		c := d.clause(l.clauses[i].words[0])
		for strings.Contains(strings.Join(c.words, " "), "ANCHOR KEY") {
			c = d.clause("SW")
		}
		another.clauses = append(another.clauses, c)
	}
	return another
}

// denies reports whether a reply denies the call.
func denies(reply string) bool {
	return reply[0] == '-' || !strings.HasPrefix(strings.TrimPrefix(reply, "*2\r\n"), "*5\r\n:0\r\n")
}

// counts returns the counters of a policy, as RL.POLICY GET shows them.
func counts(n *node, name string) map[string]int64 {
	_, text, found := strings.Cut(n.do("RL.POLICY", "GET", name), inproc.Bulk("counts"))
	require.True(n.t, found)
	all := map[string]int64{}
	for _, m := range counted.FindAllStringSubmatch(text, -1) {
		all[m[1]], _ = strconv.ParseInt(m[2], 10, 64)
	}
	return all
}

var counted = regexp.MustCompile(`\r\n([a-z-]+)\r\n:(\d+)\r\n`)

// TestTryCountsAsTwoServersAnswer: a policy with a candidate answers like one without, and its
// counters are those of two servers, one with the policy and one with the candidate as its
// policy.
func TestTryCountsAsTwoServersAnswer(t *testing.T) {
	effort.Alone(t)
	d := dice{rand.New(rand.NewPCG(3, 16))}
	tries, old, candidate := newNode(t), newNode(t), newNode(t)
	all := []*node{tries, old, candidate}
	total := map[string]int64{}
	for round := range effort.Steps(20_000, 1_000_000) / 500 {
		name := fmt.Sprintf("p%d", round)
		l := d.limits(round%3 == 0)
		setPolicy(tries, name, l)
		setPolicy(old, name, l)
		var want map[string]int64
		replace := func() {
			other := d.like(d.limits(l.millis))
			setPolicy(candidate, name, other)
			require.Equal(t, ok, tries.do(append([]string{"RL.POLICY", "TRY", name, "LIMITS"}, other.words()...)...))
			for i := range 16 { // the state of an earlier candidate may not fit the new one
				for k := range 4 {
					c := call{policy: name, key: fmt.Sprintf("k%d", k)}
					candidate.do("DEL", c.stateKey(i))
					c.policy += "#try"
					tries.do("DEL", c.stateKey(i))
				}
			}
			want = map[string]int64{}
		}
		replace()
		for i := range 500 {
			if pass := d.pass(); pass > 0 {
				for _, n := range all {
					n.Server().Clock.Advance(pass)
				}
			}
			c := d.call(name, fmt.Sprintf("k%d", d.IntN(4)))
			if i == 200 && round%2 == 0 {
				replace()
				require.Zero(t, counts(tries, name)["try-both-allow"])
			}
			answer := old.do(c.words()...)
			require.Equal(t, answer, tries.do(c.words()...), "%q", c.words())
			if answer[0] == '-' || c.mode == "PEEK" || c.quantity == 0 {
				continue
			}
			other := candidate.do(c.words()...)
			if c.quantity < 0 {
				continue
			}
			switch [2]bool{denies(answer), denies(other)} {
			case [2]bool{false, false}:
				want["try-both-allow"]++
			case [2]bool{false, true}:
				want["try-only-old-allows"]++
			case [2]bool{true, false}:
				want["try-only-new-allows"]++
			default:
				want["try-neither-allows"]++
			}
		}
		got := counts(tries, name)
		for _, kind := range []string{"try-both-allow", "try-only-old-allows", "try-only-new-allows", "try-neither-allows"} {
			require.Equal(t, want[kind], got[kind], "%s of %v, %v", kind, got, want)
			total[kind] += want[kind]
		}
	}
	t.Log(total)
	for kind, n := range total {
		require.Positive(t, n, kind)
	}
	require.Len(t, total, 4)
}

// passes returns the reply to a call that passes although the limits decide as answer says. Its details are theirs.
func passes(answer string) string {
	if at := aFive.FindStringIndex(answer); at != nil {
		return answer[:at[0]] + aFive.ReplaceAllString(answer[at[0]:at[1]], "*5\r\n:0\r\n:$1\r\n:$2\r\n:-1\r\n:$3\r\n") + answer[at[1]:]
	}
	return answer
}

var aFive = regexp.MustCompile(`\*5\r\n:\d+\r\n:(\d+)\r\n:(-?\d+)\r\n:-?\d+\r\n:(-?\d+)\r\n`)

// TestShadowAllowsAndCounts: a policy with SHADOW replies like the same policy without it, details included, except
// that it allows every call and counts those that would be denied.
func TestShadowAllowsAndCounts(t *testing.T) {
	effort.Alone(t)
	d := dice{rand.New(rand.NewPCG(4, 16))}
	shadow, strict := newNode(t), newNode(t)
	total := int64(0)
	for round := range effort.Steps(10_000, 1_000_000) / 500 {
		name := fmt.Sprintf("p%d", round)
		l := d.limits(round%3 == 0)
		setPolicy(shadow, name, l, "SHADOW")
		setPolicy(strict, name, l)
		denied := int64(0)
		for range 500 {
			if pass := d.pass(); pass > 0 {
				shadow.Server().Clock.Advance(pass)
				strict.Server().Clock.Advance(pass)
			}
			c := d.call(name, fmt.Sprintf("k%d", d.IntN(4)))
			answer := strict.do(c.words()...)
			if answer[0] == '*' && denies(answer) && c.mode != "PEEK" && c.quantity != 0 {
				denied++
			}
			want := passes(answer)
			require.Equal(t, want, shadow.do(c.words()...), "%q", c.words())
		}
		require.Equal(t, denied, counts(shadow, name)["shadow-would-be-denied"])
		require.Zero(t, counts(strict, name)["shadow-would-be-denied"])
		total += denied
	}
	t.Log(total)
	require.Positive(t, total)
}
