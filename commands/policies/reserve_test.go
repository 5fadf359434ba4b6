package policies_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
)

// estimate is a reservation in the test's model: what a call has taken of one request, some tokens and a place.
type estimate struct {
	id, key string
	tokens  int64
	ttl     time.Duration
	until   time.Duration // when it lapses
	free    bool          // it has taken nothing
	ended   bool          // settled, or cancelled after its time
	forget  time.Duration // when a settled one is forgotten
}

// estimates is the test's model of a policy with reservations. It does not know limiters: the usage of a key is the
// sum of what was committed and of what is reserved.
type estimates struct {
	*rand.Rand
	t    *testing.T
	s    *inproc.Fed
	name string
	now  time.Duration
	made []*estimate
	// requests and tokens are those that were committed for good, by key.
	requests, tokens map[string]int64
	seen             map[string]int
}

const remembered = time.Minute // id-ttl

func (m *estimates) do(format string, args ...any) string {
	return m.s.Do(strings.Fields(fmt.Sprintf(format, args...))...)
}

// change changes the policy, or an entry that belongs to it, for some seconds or until it is changed again.
func (m *estimates) change() {
	limits := func() string {
		return fmt.Sprintf("LIMITS SW %d 86400 FIXED ANCHOR FIRST CALLS TB %d 1 8640 CC %d 7", 1+m.IntN(12), 10+m.IntN(200), 1+m.IntN(8))
	}
	pattern, ex := []string{"k1", "k2", "k*", "*"}[m.IntN(4)], 1+m.IntN(20)
	kinds := []string{
		"POLICY SET %[1]s %[4]s", "POLICY SET %[1]s SHADOW %[4]s", "POLICY TRY %[1]s %[4]s", "POLICY TRY %[1]s OFF", "POLICY DEL %[1]s",
		"OVERRIDE SET %[1]s %[2]s EX %[3]d %[4]s", "OVERRIDE SET %[1]s %[2]s %[4]s", "OVERRIDE DEL %[1]s %[2]s",
		"BOOST %[1]s %[2]s 2.5 EX %[3]d", "BOOST %[1]s %[2]s 0.5 EX %[3]d", "UNBOOST %[1]s %[2]s",
		"BLOCK %[1]s %[2]s EX %[3]d", "UNBLOCK %[1]s %[2]s", "EXEMPT %[1]s %[2]s EX %[3]d", "UNEXEMPT %[1]s %[2]s",
	}
	m.do("RL."+kinds[m.IntN(len(kinds))], m.name, pattern, ex, limits())
	if m.IntN(3) == 0 { // there is a policy again
		m.do("RL.POLICY SET %s %s", m.name, limits())
	}
}

var (
	limitOf   = regexp.MustCompile(`\$5\r\nlimit\r\n:(\d+)`)
	appliesOf = regexp.MustCompile(`applies\r\n\$\d+\r\n(\w+)`)
)

// used returns the usage of a key by the model: requests, tokens and places.
func (m *estimates) used(key string) (all [3]int64) {
	all = [3]int64{m.requests[key], m.tokens[key], 0}
	for _, e := range m.made {
		if e.key == key && !e.free && !e.ended && e.until > m.now {
			all[0], all[1], all[2] = all[0]+1, all[1]+e.tokens, all[2]+1
		}
	}
	return all
}

// reserve makes a reservation, or sends one again. The limits in force are those that RL.EXPLAIN tells.
func (m *estimates) reserve() {
	e := &estimate{
		id: fmt.Sprint("id", m.Int64()), key: []string{"k1", "k2"}[m.IntN(2)], tokens: 1 + m.Int64N(40),
		ttl: time.Duration(1+m.IntN(40)) * time.Second,
	}
	known := len(m.made) > 0 && m.IntN(3) == 0
	if known {
		e = m.made[len(m.made)-1-m.IntN(min(8, len(m.made)))]
	}
	why := m.do("RL.EXPLAIN %s %s %d", m.name, e.key, e.tokens)
	reply := m.do("RL.USE %s %s %d RESERVE %s %d", m.name, e.key, e.tokens, e.id, int(e.ttl.Seconds()))
	if strings.HasPrefix(why, "-NOPOLICY") {
		require.True(m.t, strings.HasPrefix(reply, "-NOPOLICY"), reply)
		m.seen["no policy"]++
		return
	}
	applies := appliesOf.FindStringSubmatch(why)[1]
	passes := func(yes bool, kind string) {
		require.Equal(m.t, yes, strings.HasPrefix(reply, "*5\r\n:0\r\n"), "%s: %s\n%s", kind, reply, why)
		m.seen[kind]++
	}
	live := known && !e.ended && e.until > m.now
	made := func(free bool) {
		*e = estimate{id: e.id, key: e.key, tokens: e.tokens, ttl: e.ttl, until: m.now + e.ttl, free: free}
		if !known {
			m.made = append(m.made, e)
		}
	}
	switch {
	case applies == "block":
		passes(false, "blocked")
	case live:
		passes(true, "repeated")
	case known && m.remembers(e):
		require.True(m.t, strings.HasPrefix(reply, "-IDENDED"), reply)
		m.seen["ended"]++
	case m.fits(why, e):
		passes(true, "reserved "+applies)
		made(false)
	case applies == "exemption" || strings.Contains(why, "$6\r\nshadow\r\n:1\r\n"):
		passes(true, "took nothing")
		made(true)
	default:
		passes(false, "denied")
	}
}

// fits reports whether the limits that RL.EXPLAIN tells have room for e.
func (m *estimates) fits(why string, e *estimate) bool {
	used, most := m.used(e.key), limitOf.FindAllStringSubmatch(why, 3)
	for i, more := range []int64{1, e.tokens, 1} {
		n, err := strconv.ParseInt(most[i][1], 10, 64)
		require.NoError(m.t, err)
		if used[i]+more > n {
			return false
		}
	}
	return true
}

// remembers reports whether the server knows that e has ended.
func (m *estimates) remembers(e *estimate) bool {
	if e.ended {
		return e.forget > m.now
	}
	return e.until+remembered > m.now
}

// settle commits, cancels or renews a reservation. Whether the policy is the same, or is there, does not matter.
func (m *estimates) settle() {
	if len(m.made) == 0 {
		return
	}
	e := m.made[len(m.made)-1-m.IntN(min(8, len(m.made)))]
	live, known := !e.ended && e.until > m.now, m.remembers(e)
	actual, want := m.Int64N(60), ":-1\r\n"
	switch op := m.IntN(4); {
	case op == 0:
		if want = ":0\r\n"; live {
			want, e.until = ":1\r\n", m.now+e.ttl
		}
		require.Equal(m.t, want, m.do("RL.RENEW %s %s %d POLICY %s", e.key, e.id, int(e.ttl.Seconds()), m.name))
	case op == 1:
		if known {
			want = ":0\r\n"
		}
		if live {
			want = ":1\r\n"
		}
		require.Equal(m.t, want, m.do("RL.CANCEL %s %s POLICY %s", e.key, e.id, m.name))
		m.end(e, known, "cancelled "+want)
	default:
		switch {
		case live:
			want = ":1\r\n"
		case known && !e.ended:
			want = ":2\r\n"
		case known:
			want = ":0\r\n"
		}
		numbers := []string{fmt.Sprint(actual), fmt.Sprint("9 ", actual)}[m.IntN(2)]
		require.Equal(m.t, want, m.do("RL.COMMIT %s %s %s POLICY %s", e.key, e.id, numbers, m.name))
		if known && !e.ended && !e.free {
			m.requests[e.key]++
			m.tokens[e.key] += actual
		}
		m.end(e, known, "committed "+want)
	}
}

// end ends e for good, if it was known and has not ended before.
func (m *estimates) end(e *estimate, known bool, kind string) {
	if m.seen[strings.TrimSpace(kind)]++; known && !e.ended {
		e.ended, e.forget = true, m.now+remembered
	}
}

// compare compares the usage of all keys.
func (m *estimates) compare(step int) {
	for _, key := range []string{"k1", "k2"} {
		for i, behind := range []string{"", "#2", "#3"} {
			_, used, _ := strings.Cut(m.s.Do("RL.INFO", m.name+":"+key+behind), inproc.Bulk("used"))
			used, _, _ = strings.Cut(strings.TrimPrefix(used, ":"), "\r\n")
			if used == "" {
				used = "0"
			}
			require.Equal(m.t, fmt.Sprint(m.used(key)[i]), used, "step %d: %s%s", step, key, behind)
		}
	}
}

// TestReservationsUnderChangingPolicies: between RL.USE with RESERVE and what settles it, the policy is changed, deleted
// and set again, and overrides, boosts, blocks and exemptions begin and end. The usage of each limit is always the sum
// of what was committed and of what is reserved.
func TestReservationsUnderChangingPolicies(t *testing.T) {
	s, seen := inproc.Open(t), map[string]int{}
	for round := range effort.Steps(20, 2000) {
		m := &estimates{
			Rand: rand.New(rand.NewPCG(uint64(round), 35)), t: t, s: s, name: fmt.Sprint("p", round), seen: seen,
			requests: map[string]int64{}, tokens: map[string]int64{},
		}
		require.Equal(t, inproc.OK, m.do("RL.POLICY SET %s LIMITS SW 10 86400 FIXED ANCHOR FIRST CALLS TB 100 1 8640 CC 5 7", m.name))
		for step := range 500 {
			if m.IntN(3) == 0 { // in all less than the time in which a token comes back
				d := time.Duration(m.Int64N(int64(5 * time.Second)))
				s.Server().Clock.Advance(d)
				m.now += d
			}
			switch m.IntN(5) {
			case 0:
				m.change()
			case 1, 2:
				m.reserve()
			default:
				m.settle()
			}
			m.compare(step)
		}
		m.do("RL.POLICY DEL %s", m.name)
		m.do("FLUSHALL")
	}
	t.Log(seen)
	for _, kind := range []string{
		"no policy", "blocked", "repeated", "ended", "reserved default", "reserved override", "reserved exemption", "took nothing", "denied",
		"committed :1", "committed :2", "committed :0", "committed :-1", "cancelled :1", "cancelled :0", "cancelled :-1",
	} {
		require.Positive(t, seen[kind], kind)
	}
}
