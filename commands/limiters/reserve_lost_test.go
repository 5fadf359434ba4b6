package limiters_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// lossy sends calls over a network that loses requests and replies. A caller without a reply sends its call
// again. It counts what the calls have to be charged: each once.
type lossy struct {
	*rand.Rand
	t         *testing.T
	s         *inproc.Fed
	limit     int // of each limit
	pending   []*attempt
	charged   map[string]int64 // units by limit
	resent    int
	denied    int
	committed int
}

// attempt is a call that its caller sends until it gets a reply.
type attempt struct {
	words string
	sent  bool
	// answered gets the reply. Its result is the next call of the same caller, or nil.
	answered func(reply string) *attempt
}

// passed reports whether the reply is that of a limiter that has granted a call.
func (l *lossy) passed(reply string) bool {
	require.True(l.t, strings.HasPrefix(reply, "*5\r\n:"), reply)
	if strings.HasPrefix(reply, "*5\r\n:0\r\n") {
		return true
	}
	l.denied++
	return false
}

// once returns a call that has to be charged units on each of limits, once. %s in words stands for the
// units and then the token.
func (l *lossy) once(token, words string, limits ...string) *attempt {
	units := 1 + l.Int64N(9)
	return &attempt{words: fmt.Sprintf(words, units, token), answered: func(reply string) *attempt {
		if l.passed(reply) {
			for _, name := range limits {
				l.charged[name] += units
			}
		}
		return nil
	}}
}

// estimated returns a call that reserves an estimate, whose caller then commits the actual units or cancels.
// settle has the words after the key and the token. calls is a limit that counts calls, or "".
func (l *lossy) estimated(token, words, key, name, calls, behind string) *attempt {
	reserve := &attempt{words: fmt.Sprintf(words, 1+l.Int64N(9), token)}
	actual := l.Int64N(12)
	end := &attempt{words: fmt.Sprintf("RL.COMMIT %s %s %d%s", key, token, actual, behind)}
	if l.IntN(4) == 0 {
		end.words, actual = fmt.Sprintf("RL.CANCEL %s %s%s", key, token, behind), -1
	}
	reserve.answered = func(reply string) *attempt {
		if !l.passed(reply) {
			return nil
		}
		end.answered = func(reply string) *attempt {
			if reply != ":1\r\n" {
				require.Equal(l.t, ":0\r\n", reply)
				require.True(l.t, end.sent, "the first one has settled it")
			}
			if l.committed++; actual >= 0 {
				l.charged[name] += actual
				l.charged[calls]++
			}
			return nil
		}
		return end
	}
	return reserve
}

// begin returns the first call of a new caller. Nothing that is charged comes back in the time of the test.
func (l *lossy) begin(token string) *attempt {
	switch l.IntN(7) {
	case 0:
		return l.once(token, "TB.ACQUIRE tb MOST 1 8640 %d ID %s", "tb")
	case 1:
		return l.once(token, "SW.ALLOW sw MOST 86400 %d FIXED ANCHOR FIRST ID %s", "sw")
	case 2:
		units := 1 + l.Int64N(9)
		words := fmt.Sprintf("RL.MULTI 2 tb sw TB MOST 1 8640 %d SW MOST 86400 %d FIXED ANCHOR FIRST ID %s", units, units, token)
		return &attempt{words: words, answered: func(reply string) *attempt {
			if l.passed(reply) {
				l.charged["tb"] += units
				l.charged["sw"] += units
			}
			return nil
		}}
	case 3:
		return l.once(token, "RL.USE both key %d ID %s", "both:key", "both:key#2")
	case 4:
		return l.estimated(token, "TB.ACQUIRE tb MOST 1 8640 %d RESERVE %s 40000", "tb", "tb", "", "")
	case 5:
		return l.estimated(token, "SW.ALLOW sw MOST 86400 %d FIXED ANCHOR FIRST RESERVE %s 40000", "sw", "sw", "", "")
	default:
		return l.estimated(token, "RL.USE api key %d RESERVE %s 40000", "key", "api:key#2", "api:key", " POLICY api")
	}
}

// do sends words, in which MOST stands for the limit.
func (l *lossy) do(words string) string {
	return l.s.Do(strings.Fields(strings.ReplaceAll(words, "MOST", strconv.Itoa(l.limit)))...)
}

// step delivers one of the pending calls, or loses the request or the reply.
func (l *lossy) step() {
	i := l.IntN(len(l.pending))
	a := l.pending[i]
	if l.IntN(20) == 0 {
		return // the request is lost
	}
	reply := l.do(a.words)
	if l.IntN(10) == 0 {
		a.sent = true
		l.resent++
		return // the reply is lost
	}
	next := a.answered(reply)
	if next == nil {
		l.pending[i] = l.pending[len(l.pending)-1]
		l.pending = l.pending[:len(l.pending)-1]
		return
	}
	l.pending[i] = next
}

// TestLostRepliesChargeOnce: a tenth of the replies is lost, and callers send their calls again while others
// call. In the end each limit has been charged what the distinct calls ask for, and each reservation is
// settled once.
func TestLostRepliesChargeOnce(t *testing.T) {
	s := inproc.Open(t)
	made := effort.Steps(20_000, 1_000_000)
	l := &lossy{Rand: rand.New(rand.NewPCG(1, 34)), t: t, s: s, limit: min(made, 500_000), charged: map[string]int64{}}
	for _, policy := range []string{
		"both LIMITS TB MOST 1 8640 SW MOST 86400 FIXED ANCHOR FIRST",
		"api LIMITS SW MOST 86400 FIXED ANCHOR FIRST CALLS TB MOST 1 8640 CC 1000 60",
	} {
		require.Equal(t, inproc.OK, l.do("RL.POLICY SET "+policy))
	}
	pause := min(time.Millisecond, 2000*time.Second/time.Duration(made)) // no token comes back meanwhile
	for n := 0; n < made || len(l.pending) > 0; {
		s.Server().Clock.Advance(time.Duration(l.Int64N(2 * int64(pause))))
		if n < made && len(l.pending) < 20 {
			l.pending = append(l.pending, l.begin(fmt.Sprint("call", n)))
			n++
			continue
		}
		l.step()
	}
	require.Positive(t, l.denied)
	require.Greater(t, l.resent, made/20)
	require.Greater(t, l.committed, 1000)
	for _, name := range []string{"tb", "sw", "both:key", "both:key#2", "api:key", "api:key#2"} {
		_, used, _ := strings.Cut(s.Do("RL.INFO", name), inproc.Bulk("used")) // it may be more than the limit
		require.True(t, strings.HasPrefix(used, fmt.Sprintf(":%d\r\n", l.charged[name])), "%s: %d, and not %s", name, l.charged[name], used)
		require.Positive(t, l.charged[name], name)
	}
	require.Equal(t, ":0\r\n", s.Do("EXISTS", "api:key#3"), "no place is taken")
	t.Log(l.resent, "calls sent again,", l.denied, "denied,", l.committed, "settled")
}

// TestTheBudgetOfDeadCallersIsBack: a thousand clients reserve a budget and disconnect. It is back at the instant
// at which their time has passed, and not earlier, for each kind of limiter.
func TestTheBudgetOfDeadCallersIsBack(t *testing.T) {
	for name, c := range map[string]struct{ reserve, look, full string }{
		"bucket":  {"TB.ACQUIRE k 10000 1 86400 10", "TB.ACQUIRE k 10000 1 86400 0", inproc.Five(0, 10000, 10000, -1, 0)},
		"fixed":   {"SW.ALLOW k 10000 86400 10 FIXED", "SW.ALLOW k 10000 86400 0 FIXED", inproc.Five(0, 10000, 10000, -1, 0)},
		"counter": {"SW.ALLOW k 10000 86400 10", "SW.ALLOW k 10000 86400 0", inproc.Five(0, 10000, 10000, -1, 0)},
		"log":     {"SW.ALLOW k 10000 86400 10 LOG", "SW.ALLOW k 10000 86400 0 LOG", inproc.Five(0, 10000, 10000, -1, 0)},
		"buckets": {"SW.ALLOW k 10000 86400 10 BUCKETS 24", "SW.ALLOW k 10000 86400 0 BUCKETS 24", inproc.Five(0, 10000, 10000, -1, 0)},
		"policy":  {"RL.USE p k 10", "RL.USE p k 0 0 0", inproc.Five(0, 1000, 1000, -1, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			s := inproc.Open(t)
			require.Equal(t, inproc.OK, s.Do(strings.Fields("RL.POLICY SET p LIMITS SW 2000 86400 FIXED CALLS TB 10000 1 86400 CC 1000 60")...))
			for i := range 1000 {
				caller := s.Another()
				reply := caller.Do(strings.Fields(fmt.Sprintf("%s RESERVE id%d 30", c.reserve, i))...)
				require.True(t, strings.HasPrefix(reply, "*5\r\n:0\r\n"), reply)
				caller.Leave()
			}
			s.Server().Clock.Advance(30*time.Second - time.Nanosecond)
			require.Contains(t, s.Do(strings.Fields(c.look)...), "\r\n:0\r\n:-1\r\n", "nothing is left")
			s.Server().Clock.Advance(time.Nanosecond)
			require.Equal(t, c.full, s.Do(strings.Fields(c.look)...))
		})
	}
}
