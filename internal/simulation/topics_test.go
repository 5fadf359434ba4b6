package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cellserver/cellserver/internal/inproc"
)

// years is the duration of windows and leases for which time must not matter: ten years, in
// seconds. A window that is aligned to the epoch ends in six years.
const years = "315360000"

// topic is the kind of calls of a part.
type topic int

const (
	topicCounter topic = iota // INCRBY
	topicString               // SET, with a distant expiry
	topicExec                 // MULTI, INCRBY, INCRBY, EXEC
	topicScript               // EVAL
	topicWindow               // SW.ALLOW
	topicReserve              // SW.ALLOW and TB.ACQUIRE with RESERVE, RL.COMMIT, RL.CANCEL
	topicUse                  // RL.USE
	topicMulti                // RL.MULTI of two windows
	topicPlaces               // CC.ACQUIRE, CC.RELEASE
	topicPolicy               // RL.POLICY SET
	topics
)

var topicNames = [topics]string{"counter", "string", "exec", "script", "window", "reserve", "use", "multi", "places", "policy"}

// each is the number of parts of a topic in a round.
const each = 3

// script adds to two keys.
const script = `return {redis.call('INCRBY', KEYS[1], ARGV[1]), redis.call('INCRBY', KEYS[2], ARGV[1])}`

// newPart returns part i of a topic in a round.
func newPart(t topic, round, i int) *part {
	p := &part{name: fmt.Sprintf("%s:%d:%d", topicNames[t], round, i), topic: t, limit: 10 + 10*int64(i)}
	p.keys = []string{p.name}
	switch t {
	case topicExec, topicScript, topicMulti:
		p.keys = []string{p.name + ":a", p.name + ":b"}
	case topicReserve:
		p.how = round + i
	case topicUse:
		p.keys, p.limit = []string{fmt.Sprintf("u%d-%d", round, i)}, useLimit
	case topicPlaces:
		p.limit = 2 + int64(i)
	case topicPolicy:
		p.keys = []string{fmt.Sprintf("p%d-%d", round, i)}
	}
	return p
}

// useLimit is the limit of the policy "use".
const useLimit = 15

// parts has the parts of the present round, and those of earlier rounds.
type parts struct {
	mu   sync.Mutex // guards the fields below
	now  []*part
	past []*part
}

// begin replaces the parts by those of a new round.
func (p *parts) begin(round int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past, p.now = append(p.past, p.now...), nil
	for t := range topics {
		for i := range each {
			p.now = append(p.now, newPart(t, round, i))
		}
	}
}

// pick returns a random part of the round.
func (p *parts) pick(rng *rand.Rand) *part {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.now) == 0 {
		return nil
	}
	return p.now[rng.IntN(len(p.now))]
}

// all returns the parts of the round and those of earlier rounds.
func (p *parts) all() (now, past []*part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*part(nil), p.now...), append([]*part(nil), p.past...)
}

// recorded makes a call whose reply is added to the history.
func (c *client) recorded(p *part) bool {
	p.pass(&c.s.order, c.s.wrong)
	in, commands := c.draw(p)
	identified := in.hold != 0 || c.identify(p, commands)
	began, call := time.Now(), c.s.order.next()
	reply := c.exchange(commands...)
	known, none, useful := c.settle(reply)
	for tries := 0; identified && !known && tries < 3; tries++ { // the call counts once, however often it is sent
		c.line.close()
		if c.line = nil; !c.connect() {
			continue
		}
		lost := !none
		reply = c.exchange(commands...)
		known, none, useful = c.settle(reply)
		in.again, none = true, none && !lost
	}
	if c.line == nil {
		useful = false
	}
	if strings.HasPrefix(reply, "-ID") && !c.ended(in, reply) {
		c.s.fail("linearizable", "%q is answered by %q", commands, reply)
	}
	out, ok := answer(p, in, reply, known)
	if in.hold != 0 {
		c.follow(p, in, out, none, began, call)
	}
	switch {
	case none:
	case known && !ok:
		c.s.fail("linearizable", "%q is answered by %q", commands, reply)
	case out.denied && (!c.s.plan.looks() || slices.Contains(commands[0], "BLOCK")):
		// A waiting call is denied at its timeout, even if there is room for it, when others wait
		// before it. What was sent before may have had an effect.
		if in.again {
			p.note(c.id, in, output{}, call, 0)
		}
	default:
		p.note(c.id, in, out, call, c.s.order.next())
	}
	return useful
}

// identify gives a third of the calls that may have it the option ID. It reports whether it has done
// so.
func (c *client) identify(p *part, commands [][]string) bool {
	limiter := p.topic == topicWindow || p.topic == topicReserve || p.topic == topicUse || p.topic == topicMulti
	if !limiter || slices.Contains(commands[0], "BLOCK") || c.rng.IntN(3) > 0 {
		return false
	}
	c.tags++
	commands[0] = append(commands[0], "ID", fmt.Sprintf("%d-%d", c.id, c.tags))
	return true
}

// draw returns a random call of a part.
func (c *client) draw(p *part) (in input, commands [][]string) {
	in = input{kind: kindAdd, n: 1 + c.rng.Int64N(3), limit: p.limit}
	n, limit := strconv.FormatInt(in.n, 10), strconv.FormatInt(p.limit, 10)
	one := func(words ...string) [][]string { return [][]string{words} }
	switch p.topic {
	case topicCounter:
		commands = one("INCRBY", p.keys[0], n)
	case topicExec, topicScript:
		in.kind, commands = kindAddBoth, one("EVAL", script, "2", p.keys[0], p.keys[1], n)
		if p.topic == topicExec {
			commands = [][]string{{"MULTI"}, {"INCRBY", p.keys[0], n}, {"INCRBY", p.keys[1], n}, {"EXEC"}}
		}
	case topicWindow:
		in.kind, commands = kindTake, one("SW.ALLOW", p.keys[0], limit, years, n, "FIXED")
		if c.rng.IntN(10) == 0 {
			commands[0] = append(commands[0], "BLOCK", "0.2")
		}
	case topicReserve:
		return c.drawReserve(p, in)
	case topicUse:
		in.kind, commands = kindTake, one("RL.USE", "use", p.keys[0], n)
	case topicMulti:
		in.kind = kindTakeBoth
		commands = one("RL.MULTI", "2", p.keys[0], p.keys[1], "SW", limit, years, n, "FIXED", "SW", limit, years, n, "FIXED", "WITHDETAILS")
	case topicPlaces:
		member := c.rng.IntN(8)
		in.kind, in.n = kindAcquire, 1<<member
		if commands = one("CC.ACQUIRE", p.keys[0], limit, years, "m"+strconv.Itoa(member)); c.rng.IntN(3) == 0 {
			in.kind, commands = kindRelease, one("CC.RELEASE", p.keys[0], "m"+strconv.Itoa(member))
		} else if c.rng.IntN(4) == 0 {
			commands[0] = append(commands[0], "BLOCK", "0.5")
		}
	case topicString, topicPolicy:
		c.tags++
		in.kind, in.n = kindSet, int64(c.id)*1_000_000+int64(c.tags)
		n = strconv.FormatInt(in.n, 10)
		if commands = one("SET", p.keys[0], n, "EX", years); p.topic == topicPolicy {
			commands = one("RL.POLICY", "SET", p.keys[0], "COMMENT", n, "LIMITS", "SW", "10", "60")
		}
	default:
	}
	return in, commands
}

// answer parses a reply. ok is false for a reply that does not fit the call.
func answer(p *part, in input, reply string, known bool) (out output, ok bool) {
	if !known {
		return output{}, true
	}
	out.known = true
	got := integers(reply)
	switch in.kind {
	case kindAdd:
		return output{known: true, a: first(got)}, len(got) == 1
	case kindAddBoth:
		if len(got) != 2 {
			return out, false
		}
		return output{known: true, a: got[0], b: got[1]}, true
	case kindTake, kindReserve, kindAcquire:
		if len(got) != 5 {
			return out, false
		}
		return output{known: true, denied: got[0] != 0, a: got[2]}, got[1] == p.limit
	case kindTakeBoth:
		if len(got) != 15 {
			return out, false
		}
		return output{known: true, denied: got[0] != 0, a: got[7], b: got[12]}, got[1] == p.limit
	case kindRelease:
		return output{known: true, denied: first(got) == 0}, len(got) == 1
	case kindCommit, kindCancel:
		// That a reservation is unknown waits for no replica, like a denial.
		return output{known: true, denied: first(got) < 0, a: first(got)}, len(got) == 1
	default:
		return out, reply == "+OK\r\n"
	}
}

func first(n []int64) int64 {
	if len(n) == 0 {
		return -1
	}
	return n[0]
}

// look reads the state of a part on a node. No other calls run meanwhile.
func (s *Sim) look(n *inproc.Node, p *part) (out output) {
	out.known = true
	limit := strconv.FormatInt(p.limit, 10)
	value := func(key string) int64 {
		words := strings.Split(s.do(n, "GET", key), "\r\n")
		if len(words) < 2 {
			return 0
		}
		v, _ := strconv.ParseInt(words[1], 10, 64)
		return v
	}
	used := func(command ...string) int64 {
		if got := integers(s.do(n, command...)); len(got) == 5 {
			return p.limit - got[2]
		}
		return -1
	}
	switch p.topic {
	case topicCounter, topicString:
		out.a = value(p.keys[0])
	case topicExec, topicScript:
		out.a, out.b = value(p.keys[0]), value(p.keys[1])
	case topicWindow:
		out.a = used("SW.ALLOW", p.keys[0], limit, years, "0", "FIXED")
	case topicReserve:
		if got := integers(s.do(n, p.limiter(p.limit+beyond, 0)...)); len(got) == 5 {
			out.a = p.limit + beyond - got[2]
		}
	case topicUse:
		out.a = used("RL.USE", "use", p.keys[0], "0")
	case topicMulti:
		out.a = used("SW.ALLOW", p.keys[0], limit, years, "0", "FIXED")
		out.b = used("SW.ALLOW", p.keys[1], limit, years, "0", "FIXED")
	case topicPlaces:
		out.a = used("CC.ACQUIRE", p.keys[0], limit, years, "nobody", "PEEK")
	default:
		_, rest, _ := strings.Cut(s.do(n, "RL.POLICY", "GET", p.keys[0]), "comment\r\n")
		if words := strings.SplitN(rest, "\r\n", 3); len(words) == 3 {
			out.a, _ = strconv.ParseInt(words[1], 10, 64)
		}
	}
	return out
}

// rate is a key that admits a number of units at once, and then one unit in each period.
type rate struct {
	key   string
	how   int
	mu    sync.Mutex // guards the fields below
	all   []admission
	times int64
}

// The limit of all keys with a rate. Those of a calendar admit half of the limit in a day and no more, and two days
// may meet in a span.
const (
	rateLimit = 20
	rateEach  = 500 * time.Millisecond
)

// command returns a call that takes n units, or waits until it may.
func (r *rate) command(n int64, wait bool) (words []string) {
	quantity := strconv.FormatInt(n, 10)
	switch r.how {
	case 0:
		return []string{"CL.THROTTLE", r.key, "19", "2", "1", quantity}
	case 1:
		words = []string{"TB.ACQUIRE", r.key, "20", "2", "1", quantity}
	case 2: // a day begins 20 seconds after the beginning of the history, which is 11:13:20 there
		words = []string{"SW.ALLOW", r.key, "10", "DAY", quantity, "ZONE", "Pacific/Auckland", "FROM", "11:14"}
	default:
		words = []string{"RL.USE", "rate", r.key, quantity}
	}
	if wait {
		words = append(words, "BLOCK", "0.3")
	}
	return words
}

func (r *rate) note(a admission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, a)
}

// rates has all keys with a rate.
type rates struct{ all []*rate }

func newRates() (r rates) {
	for i := range 8 {
		r.all = append(r.all, &rate{key: fmt.Sprintf("rate:%d", i), how: i % 4, times: 1})
	}
	return r
}

func (r rates) pick(rng *rand.Rand) *rate { return r.all[rng.IntN(len(r.all))] }

// queue is a list whose elements are unique.
type queue struct {
	key string

	mu       sync.Mutex // guards the fields below
	sent     map[string]bool
	kept     map[string]bool // acknowledged
	got      map[string]bool
	lostPops int
	excused  bool
}

func newQueue(round int) *queue {
	return &queue{key: fmt.Sprintf("queue:%d", round), sent: map[string]bool{}, kept: map[string]bool{}, got: map[string]bool{}}
}

func (q *queue) pushes(element string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent[element] = true
}

func (q *queue) pushed(element string, known, none bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if known {
		q.kept[element] = true
	} else if none {
		delete(q.sent, element)
	}
}

// popped records the element of a pop, and returns what is wrong with it.
func (q *queue) popped(element string, got, nothing bool) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !got && !nothing:
		q.lostPops++
	case got && q.excused:
	case got && q.got[element]:
		return "element " + element + " was delivered twice"
	case got && !q.sent[element]:
		return "element " + element + " was delivered, and was never sent"
	case got:
		q.got[element] = true
	}
	return ""
}

// check compares the elements left in the list.
func (q *queue) check(left []string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.excused {
		return ""
	}
	is := map[string]bool{}
	for _, e := range left {
		if q.got[e] || is[e] || !q.sent[e] {
			return fmt.Sprintf("element %s is in the list: delivered %t, twice %t, sent %t", e, q.got[e], is[e], q.sent[e])
		}
		is[e] = true
	}
	missing := 0
	for e := range q.kept {
		if !q.got[e] && !is[e] {
			missing++
		}
	}
	if missing > q.lostPops {
		return fmt.Sprintf("%d elements are gone, and %d pops were not answered", missing, q.lostPops)
	}
	return ""
}
