package server_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/internal/simnet"
	"github.com/cellserver/cellserver/server"
)

// reached is the time after which each server has been told of a change, and has it.
const reached = 50 * time.Millisecond

// equal compares servers over a store with a server that has its policies and its limits itself.
type equal struct {
	t     *testing.T
	world *inproc.World
	rng   *rand.Rand
	store *sharedStore
	alone *inproc.Client
	over  []*inproc.Client
	file  string   // the policy file of all servers
	known []string // the latest calls with ID or RESERVE, which clients may send again

	calls, changes, reloads, waited int
	denied, failed                  int
	kinds                           map[string]int // of replies that are errors
}

func newEqual(t *testing.T, w *inproc.World, seed uint64) *equal {
	q := &equal{t: t, world: w, rng: rand.New(rand.NewPCG(seed, 31)), store: newSharedStore(t), kinds: map[string]int{}}
	q.file = policyFile(t, "  filed:\n    limits: [SW 5 60]\n")
	options := []string{"--policy-file", q.file, "--id-max-per-key", "50"}
	q.alone = w.StartWith(func(o *server.Options) { o.Clock = q.store.clock }, options...).Dial()
	for range 2 {
		q.over = append(q.over, startOver(w, q.store, options...).Dial())
	}
	return q
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func (q *equal) upTo(n int) string { return fmt.Sprint(1 + q.rng.IntN(n)) }

// chance reports true once in n times.
func (q *equal) chance(n int) bool { return q.rng.IntN(n) == 0 }

// both has the server alone and one over the store run a command, and compares the replies.
func (q *equal) both(words ...string) string {
	q.t.Helper()
	want, got := q.alone.Do(words...), q.over[q.rng.IntN(len(q.over))].Do(words...)
	if got != want {
		require.Equal(q.t, want, got, "call %d, change %d: %q", q.calls, q.changes, words)
	}
	return want
}

// waiting does what both does for a call that may wait, and lets time pass until it is answered.
func (q *equal) waiting(words ...string) string {
	over := q.over[q.rng.IntN(len(q.over))]
	q.alone.Command(words...)
	over.Command(words...)
	for q.world.Settle(); !answered(q.alone) || !answered(over); q.world.Settle() {
		require.Equal(q.t, answered(q.alone), answered(over), "%q", words)
		q.waited++
		q.advance(time.Second)
	}
	want, got := q.alone.Reply(), over.Reply()
	require.Equal(q.t, want, got, "call %d, change %d: %q", q.calls, q.changes, words)
	return want
}

// advance lets time pass. After each timer it waits for what that has started.
func (q *equal) advance(d time.Duration) {
	require.NoError(q.t, q.store.clock.Manual.Advance(d, q.world.Settle))
}

// answered reports whether a reply has come.
func answered(c *inproc.Client) bool { return c.R.Buffered() > 0 || !c.Conn.(*simnet.Conn).Idle() }

// policy returns the name of a policy. The last is one of the policy file.
func (q *equal) policy() string { return pick(q.rng, "api", "org", "plan", "edge", "slots", "filed") }

func (q *equal) key(policy string) string {
	if policy == "edge" {
		return pick(q.rng, "10.0.0.1", "10.0.0.2", "10.1.0.1", "2001:db8::1", "2001:db8:1::1")
	}
	if policy == "filed" && q.chance(4) {
		return fileKey
	}
	return "k" + q.upTo(6)
}

func (q *equal) pattern(policy string) string {
	switch {
	case q.chance(5):
		return "*"
	case policy == "edge":
		return pick(q.rng, "10.0.0.0/8", "10.0.0.1", "2001:db8::/32")
	case q.chance(4):
		return "k*"
	}
	return "k" + q.upTo(6)
}

// clause returns a random clause.
func (q *equal) clause() string {
	switch q.rng.IntN(12) {
	case 0, 1, 2:
		return "SW " + q.upTo(9) + " " + q.upTo(40) + pick(q.rng, "", " FIXED", " COUNTER", " LOG", " BUCKETS 4", " BUCKETS 5 EVEN", " ANCHOR KEY", " ANCHOR FIRST") + pick(q.rng, "", "", " CALLS")
	case 3, 4, 5:
		return "TB " + q.upTo(9) + " " + q.upTo(5) + " " + q.upTo(40) + pick(q.rng, "", " GREEDY", " INTERVAL", " DEBT", " INIT 1") + pick(q.rng, "", "", " CALLS")
	case 6, 7:
		return "CL " + fmt.Sprint(q.rng.IntN(9)) + " " + q.upTo(5) + " " + q.upTo(40) + pick(q.rng, "", "", " CALLS")
	case 8:
		return "SW " + q.upTo(20) + " " + pick(q.rng, "DAY", "WEEK", "MONTH", "YEAR") + pick(q.rng, "", " ZONE Europe/Berlin")
	case 9:
		if q.chance(4) {
			return "SW 0 60"
		}
		return "SW " + q.upTo(30) + " 60"
	case 10:
		return "TB " + q.upTo(30) + " 1 1"
	}
	return "CC " + q.upTo(4) + " " + q.upTo(40)
}

// set returns the words that set a policy.
func (q *equal) set(name string) string {
	words := "RL.POLICY SET " + name + pick(q.rng, "", "", " MS") + pick(q.rng, "", "", "", "", " SHADOW") + pick(q.rng, "", "", "", " COUNT")
	if name == "edge" {
		words += " KEY IP 24 48"
	}
	return words + pick(q.rng, "", "", " NOTIFY 80%") + " CLASS batch KEEP 50% CLASS urgent KEEP 0%" + pick(q.rng, "", " SYNC") + " " + q.limits()
}

// limits returns random limits, perhaps with a ban.
func (q *equal) limits() string {
	text := q.clause()
	for range q.rng.IntN(3) {
		text += " " + q.clause()
	}
	switch {
	case q.chance(30):
		text = "NONE"
	case q.chance(4):
		text += " BAN " + q.upTo(4) + " " + q.upTo(60) + " " + q.upTo(100) + pick(q.rng, "", " FACTOR 2 MAX 500")
	}
	return "LIMITS " + text
}

// change changes policies at the server alone and at one over the store, and waits until all of them have it.
func (q *equal) change() {
	q.changes++
	name := q.policy()
	pattern, ex := q.pattern(name), " EX "+q.upTo(300)
	words := ""
	switch n := q.rng.IntN(24); {
	case n < 5:
		words = q.set(name)
	case n < 8:
		words = "RL.OVERRIDE SET " + name + " " + pattern + pick(q.rng, "", ex) + " " + q.limits()
	case n < 10:
		words = "RL.BLOCK " + name + " " + pattern + pick(q.rng, "", ex, ex)
	case n < 12:
		words = "RL.EXEMPT " + name + " " + pattern + pick(q.rng, "", ex, ex)
	case n < 14:
		words = "RL.BOOST " + name + " " + pattern + pick(q.rng, " 2", " 0.5", " 3.25") + ex
	case n < 16:
		words = "RL.POLICY TRY " + name + " " + pick(q.rng, "OFF", q.limits(), q.limits(), q.limits())
	case n < 20:
		words = pick(q.rng, "RL.UNBLOCK ", "RL.UNBLOCK ", "RL.UNEXEMPT ", "RL.UNBOOST ", "RL.OVERRIDE DEL ") + name + " " + pattern
	case n < 22:
		words = q.set(name)
		if q.chance(4) {
			words = "RL.POLICY DEL " + name
		}
	default:
		q.reload()
		return
	}
	q.both(strings.Fields(words)...)
	time.Sleep(reached)
	if q.changes%16 == 0 {
		q.both("RL.POLICY", "DUMP")
		q.both("RL.POLICY", "LIST")
		q.both("RL.OVERRIDE", "LIST", q.policy())
	}
}

// fileKey is a key that has overrides in the policy file, and no others: servers over a store keep what the file hides,
// and put it in force again when the file does not hide it any more. A server alone does not.
const fileKey = "f1"

// reload gives all servers another policy file.
func (q *equal) reload() {
	q.reloads++
	text := "policies:\n  filed:\n    limits: [" + pick(q.rng, "SW 5 60", "TB 4 2 30", "SW 3 DAY, TB 9 1 1", "CL 3 1 10") + "]\n"
	if q.chance(2) {
		text += "    overrides:\n      " + fileKey + ":\n        limits: [SW " + q.upTo(9) + " 60]\n"
	}
	require.NoError(q.t, os.WriteFile(q.file, []byte(text), 0o600))
	want := q.alone.Do("RL.POLICY", "RELOAD")
	for _, c := range q.over {
		require.Equal(q.t, want, c.Do("RL.POLICY", "RELOAD"))
	}
}

// options returns random options of RL.USE.
func (q *equal) options(several bool) string {
	text := pick(q.rng, "", "", "", "", "", "", "", " PEEK", " PARTIAL", " FORCE")
	if !several && q.chance(16) {
		text = pick(q.rng, " WAIT ", " BLOCK ") + q.upTo(30)
	}
	if q.chance(6) {
		text += pick(q.rng, " KEEP 1", " KEEP 50%", " KEEP 20%", " CLASS batch", " CLASS batch", " CLASS urgent")
	}
	if !q.chance(8) {
		text += " MEMBER m" + q.upTo(5)
	}
	switch {
	case q.chance(8):
		text += " ID t" + q.upTo(40)
	case !several && q.chance(16):
		text += " RESERVE r" + q.upTo(20) + " " + q.upTo(60)
	}
	return text + pick(q.rng, "", " MS") + pick(q.rng, "", " WITHDETAILS")
}

// call has both sides decide a call, or one that belongs to calls.
func (q *equal) call() {
	q.calls++
	name := q.policy()
	key, quantity := q.key(name), ""
	if q.chance(3) {
		quantity = " " + pick(q.rng, "0", "1", "2", "2", "3", "3", "5", "100", "-1")
		if q.chance(10) {
			quantity = " " + pick(q.rng, "1 2", "2 0 1", "-3")
		}
	}
	words := "RL.USE " + name + " " + key + quantity
	switch n := q.rng.IntN(40); {
	case n < 30:
		words += q.options(false)
	case n < 34:
		other := q.policy()
		words += pick(q.rng, " AND ", " ANY ") + other + " " + q.key(other)
		words += q.options(true)
	case n < 36:
		words = "RL.EXPLAIN" + words[len("RL.USE"):]
	case n < 37:
		words = "RL.RESET " + name + " " + key
	default:
		words = pick(q.rng, "RL.COMMIT ", "RL.CANCEL ") + key + " r" + q.upTo(20)
		if strings.HasPrefix(words, "RL.COMMIT") {
			words += " " + fmt.Sprint(q.rng.IntN(4))
		}
		words += " POLICY " + name
	}
	switch {
	case strings.Contains(words, " ID "), strings.Contains(words, " RESERVE "):
		q.known = append(q.known[max(0, len(q.known)-20):], words)
	case len(q.known) > 0 && q.chance(30):
		words = pick(q.rng, q.known...)
	}
	ask := q.both
	if strings.Contains(words, " BLOCK ") {
		ask = q.waiting
	}
	said := ask(strings.Fields(words)...)
	switch {
	case said[0] == '-':
		q.failed++
		kind, _, _ := strings.Cut(said, " ")
		if q.kinds[kind]++; kind == "-WRONGTYPE" && q.chance(3) { // a policy has a clause of another family
			q.both("RL.RESET", name, key)
		}
	case strings.HasPrefix(said, "*5\r\n:1\r\n"), strings.HasPrefix(said, "*2\r\n*5\r\n:1\r\n"):
		q.denied++
	}
}

// pass lets a random time pass, or none.
func (q *equal) pass() {
	switch q.rng.IntN(40) {
	case 0:
		q.advance(time.Duration(q.rng.Int64N(int64(40 * time.Second))))
	case 1, 2, 3, 4, 5, 6:
		q.advance(time.Duration(q.rng.Int64N(int64(2 * time.Second))))
	}
	if q.chance(5000) {
		q.advance(time.Duration(q.rng.Int64N(int64(72 * time.Hour))))
	}
}

// TestPoliciesOfAStoreAreThoseOfAServer has a server with policies of its own, and servers over a store, run the same calls
// with changes of policies in between, and compares all replies.
func TestPoliciesOfAStoreAreThoseOfAServer(t *testing.T) {
	effort.Alone(t)
	calls := 20_000
	if effort.Long() {
		calls = 100_000
	}
	for seed := range effort.Steps(1, 10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) { newEqual(t, w, uint64(seed)).play(calls) })
		})
	}
}

// play compares so many calls.
func (q *equal) play(calls int) {
	for _, name := range []string{"api", "org", "plan", "edge", "slots"} {
		q.both(strings.Fields(q.set(name))...)
	}
	time.Sleep(reached)
	for q.calls < calls {
		if q.chance(100) {
			q.change()
		}
		q.call()
		q.pass()
	}
	q.t.Logf("%d calls, of them %d denied and %d errors %v; %d changes, of them %d of the file; %d s waited; no difference",
		q.calls, q.denied, q.failed, q.kinds, q.changes, q.reloads, q.waited)
}
