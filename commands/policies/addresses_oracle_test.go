package policies_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// host is an IPv4 or IPv6 address with the number of its bits that count: all of them, or those of a network.
type host struct {
	ip   net.IP // 4 or 16 bytes
	bits int
}

// binary returns the bits that count, after the family: a network contains another one if that text is a prefix.
func (h host) binary() string {
	text := fmt.Sprint(len(h.ip), ":")
	for _, b := range h.ip {
		text += fmt.Sprintf("%08b", b)
	}
	return text[:len(text)-8*len(h.ip)+h.bits]
}

// text returns the network of the given length as text.
func (h host) text(bits int) string {
	mask := net.CIDRMask(bits, 8*len(h.ip))
	return (&net.IPNet{IP: h.ip.Mask(mask), Mask: mask}).String()
}

// host returns a random address or network close to the others.
func (d dice) host() host {
	ip := net.IP{10, byte(d.IntN(2)), byte(d.IntN(2) * 128), byte(d.IntN(3))}
	if d.IntN(2) == 0 {
		ip = append(net.IP{0x20, 1, 0xd, 0xb8, 0, byte(d.IntN(2)), 0, byte(d.IntN(3) * 85)}, make([]byte, 8)...)
		ip[15] = byte(d.IntN(2))
	}
	h := host{ip, 8 * len(ip)}
	if d.IntN(4) == 0 {
		h.bits = pick(d, h.bits-1, h.bits*3/4, h.bits/2, h.bits/4, 8, d.IntN(h.bits+1))
	}
	return h
}

// hex returns an IPv6 address without its short forms.
func hex(ip net.IP) string {
	groups := make([]string, 8)
	for i := range groups {
		groups[i] = fmt.Sprintf("%x%02X", ip[2*i], ip[2*i+1])
	}
	return strings.Join(groups, ":")
}

// written returns h as a client or an operator may write it. pattern says that it is a pattern.
func (d dice) written(h host, pattern bool) string {
	v4, short := len(h.ip) == 4, h.ip.String()
	mapped := append(append(make(net.IP, 10), 0xff, 0xff), h.ip...)
	if h.bits < 8*len(h.ip) || d.IntN(8) == 0 {
		switch {
		case !v4:
			return fmt.Sprintf("%s/%d", pick(d, short, hex(h.ip)), h.bits)
		case d.IntN(3) == 0:
			return fmt.Sprintf("%s/%d", pick(d, "::ffff:"+short, hex(mapped)), h.bits+96)
		}
		return fmt.Sprintf("%s/%d", short, h.bits)
	}
	forms := []string{short, hex(h.ip.To16())}
	if v4 {
		forms = []string{short, short, "::ffff:" + short, hex(mapped)}
	}
	if pattern {
		return pick(d, forms...)
	}
	if v4 {
		return pick(d, append(forms, short+":443", "[::FFFF:"+short+"]", "["+hex(mapped)+"%1]:0")...)
	}
	return pick(d, append(forms, "["+short+"]", "["+short+"]:65535", short+"%eth0", "["+hex(h.ip)+"%a b]:1")...)
}

// rule is an entry for a network.
type rule struct {
	override
	text string // the network as the server shows it
}

// length returns the length of the network.
func (r rule) length() int {
	_, length, _ := strings.Cut(r.text, "/")
	n, _ := strconv.Atoi(length) // 0 for "*"
	return n
}

// addresses are the test's model of a policy with KEY IP, by the bits of its patterns.
type addresses struct {
	*oracle
	limits                             *limits
	v4, v6                             int
	overrides, boosts, blocks, exempts map[string]rule
}

// longest returns the entry of rules for h.
func (o *addresses) longest(rules map[string]rule, h host) (best rule, found bool) {
	length, bits := -1, h.binary()
	for pattern, r := range rules {
		if len(pattern) > length && strings.HasPrefix(bits, pattern) && o.now() < r.until {
			best, length, found = r, len(pattern), true
		}
	}
	return best, found
}

// change sets or deletes something at random.
func (o *addresses) change() {
	h := o.host()
	text, bits, stored := o.written(h, true), h.binary(), h.text(h.bits)
	if o.IntN(8) == 0 {
		text, bits, stored = "*", "", "*"
	}
	seconds := 1 + o.IntN(40)
	r := rule{override{until: o.now().Add(time.Duration(seconds) * time.Second)}, stored}
	set := func(rules map[string]rule, words ...string) {
		require.Equal(o.t, ok, o.ours.do(words...), "%q", words)
		rules[bits] = r
	}
	end := func(rules map[string]rule, words ...string) {
		was, there := rules[bits]
		want := ":0\r\n"
		if there && o.now() < was.until {
			want = ":1\r\n"
		}
		require.Equal(o.t, want, o.ours.do(append(words, "api", text)...), "%s %q", words, text)
		delete(rules, bits)
	}
	ex := fmt.Sprint(seconds)
	switch n := o.IntN(12); n {
	case 0:
		o.v4, o.v6 = pick(o.dice, 0, 8, 16, 24, 31, 32), pick(o.dice, 0, 32, 48, 56, 64, 128)
		o.limits = o.dice.limits(false)
		words := []string{"RL.POLICY", "SET", "api", "KEY", "IP", fmt.Sprint(o.v4), fmt.Sprint(o.v6), "LIMITS"}
		require.Equal(o.t, ok, o.ours.do(append(words, o.limits.ofPolicy()...)...))
	case 1, 2, 3:
		r.limits = o.dice.limits(false)
		set(o.overrides, append([]string{"RL.OVERRIDE", "SET", "api", text, "EX", ex, "LIMITS"}, r.limits.ofPolicy()...)...)
	case 4:
		r.factor = pick[int64](o.dice, 500, 1500, 3333)
		set(o.boosts, "RL.BOOST", "api", text, fmt.Sprintf("%d.%03d", r.factor/1000, r.factor%1000), "EX", ex)
	case 5, 6:
		set(o.blocks, "RL.BLOCK", "api", text, "EX", ex)
	case 7:
		set(o.exempts, "RL.EXEMPT", "api", text, "EX", ex)
	case 8:
		end(o.overrides, "RL.OVERRIDE", "DEL")
	case 9:
		end(o.boosts, "RL.UNBOOST")
	case 10:
		end(o.blocks, "RL.UNBLOCK")
	default:
		end(o.exempts, "RL.UNEXEMPT")
	}
}

// shownLimit returns the limit of a clause as a reply shows it.
func shownLimit(c *clause) int64 {
	if c.is("CL") {
		return c.at(1) + 1
	}
	return c.at(1)
}

// call makes one call on both servers and compares the bytes of the replies.
func (o *addresses) call() {
	h := o.host()
	c := o.dice.call("api", o.written(h, false))
	came := c.key
	most := map[int]int{4: o.v4, 16: o.v6}[len(h.ip)]
	l, state := o.limits, most
	if r, found := o.longest(o.overrides, h); found {
		l, state = r.limits, max(state, r.length())
		o.seen["overridden"]++
	}
	if r, found := o.longest(o.boosts, h); found {
		l, state = l.boosted(r.factor), max(state, r.length())
		o.seen["boosted"]++
	}
	block, blocked := o.longest(o.blocks, host{h.ip, 8 * len(h.ip)})
	_, exempt := o.longest(o.exempts, h)
	want := ""
	switch {
	case o.IntN(50) == 0:
		c.key = pick(o.dice, "acme", "", "10.0.0.7.", "10.0.0.300", "::1%", "[10.0.0.7]:1", "10.0.0.7:65536", "1::2::3", "10.0.0.7/33", "::/129", "fe80::1%e/64")
		want = fmt.Sprintf("-NOADDRESS '%s' is no IP address, which policy 'api' needs as its key\r\n", c.key)
		o.seen["no address"]++
	case h.bits < most:
		want = fmt.Sprintf("-NOADDRESS network '%s' is too wide for policy 'api', which has KEY IP %d %d\r\n", c.key, o.v4, o.v6)
		o.seen["wide"]++
	case blocked && !exempt && c.quantity >= 0:
		left := int64(block.until.Sub(o.now()))
		if left = limit.SecondsUp(time.Duration(left)); c.millis {
			left = limit.MillisUp(block.until.Sub(o.now()))
		}
		c.withDetails = false
		want = inproc.Five(1, shownLimit(&l.clauses[0]), 0, left, left)
		o.seen["blocked"]++
	default:
		c.key = h.text(state)
		kind := ""
		if want, kind = o.expected(&c, l); kind == "" {
			return // no command has the same meaning
		}
		if exempt {
			want = passes(want)
			o.seen["exempt"]++
		}
		c.key = came
	}
	if got := o.ours.do(c.words()...); got != want {
		require.Equal(o.t, want, got, "%q with KEY IP %d %d", c.words(), o.v4, o.v6)
	}
	o.seen["calls"]++
	if strings.HasPrefix(want, "*5\r\n:1") {
		o.seen["denied"]++
	}
}

// TestAddressesAreNetworksWithNumbers: random calls under a policy with KEY IP have, byte for byte, the replies of
// RL.MULTI on keys that name the network, with the numbers of the longest pattern. The model has addresses as texts
// of bits and finds patterns by comparing all of them.
func TestAddressesAreNetworksWithNumbers(t *testing.T) {
	effort.Alone(t)
	o := &addresses{
		oracle: newOracle(t, 30), limits: &limits{clauses: []clause{{words: []string{"SW", "9", "60"}, units: []int{2}, counts: []int{1}, quantity: 3}}},
		v4: 24, v6: 56, overrides: map[string]rule{}, boosts: map[string]rule{}, blocks: map[string]rule{}, exempts: map[string]rule{},
	}
	require.Equal(t, ok, o.ours.do("RL.POLICY", "SET", "api", "KEY", "IP", "24", "56", "LIMITS", "SW", "9", "60"))
	steps := effort.Steps(20_000, 1_000_000)
	for o.seen["calls"] < steps {
		if o.IntN(20) == 0 {
			o.change()
		}
		if d := o.pass(); d > 0 {
			for _, n := range []*node{o.ours, o.base} {
				n.Server().Clock.Advance(d)
			}
		}
		o.call()
	}
	for _, rules := range []map[string]rule{o.overrides} {
		for pattern, r := range rules {
			if o.now() < r.until {
				require.Contains(t, o.ours.do("RL.OVERRIDE", "LIST", "api"), inproc.Bulk(r.text), pattern)
			}
		}
	}
	t.Log(o.seen)
	for _, kind := range []string{"overridden", "boosted", "blocked", "exempt", "no address", "wide", "denied"} {
		require.Greater(t, o.seen[kind], steps/200, kind)
	}
}
