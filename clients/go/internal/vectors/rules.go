package main

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
)

// address is a request and the key that it gives for the client.
type address struct {
	Name      string   `json:"name"`
	Hops      int      `json:"hops,omitempty"`
	Networks  []string `json:"networks,omitempty"`
	V6Prefix  int      `json:"v6Prefix"`
	Peer      string   `json:"peer"`
	Forwarded []string `json:"forwarded"`
	Key       string   `json:"key,omitempty"`
	Error     bool     `json:"error,omitempty"`
}

func addresses() (file, error) {
	f := file{name: "ip.json", about: "The key for the address of a client."}
	const peer = "203.0.113.9:4711"
	proxies := []string{"10.0.0.0/8", "2001:db8:ffff::/48"}
	cases := []address{
		{Name: "the peer", Peer: peer},
		{Name: "the peer without a port", Peer: "203.0.113.9"},
		{Name: "no header is believed by default", Peer: peer, Forwarded: []string{"6.6.6.6"}},
		{Name: "hops 1: what the proxy has appended, and not what the client has sent", Hops: 1, Peer: "10.0.0.2:80", Forwarded: []string{"6.6.6.6, 198.51.100.7"}},
		{Name: "hops 1 without a header: the client has come round the proxy", Hops: 1, Peer: peer},
		{Name: "hops 2 with one entry: the client has come round a proxy", Hops: 2, Peer: peer, Forwarded: []string{"6.6.6.6"}},
		{Name: "hops 2", Hops: 2, Peer: "10.0.0.2:80", Forwarded: []string{"6.6.6.6, 198.51.100.7, 10.0.0.3"}},
		{Name: "several lines are joined in their order", Hops: 2, Peer: "10.0.0.2:80", Forwarded: []string{"6.6.6.6,198.51.100.7", "10.0.0.3"}},
		{Name: "an entry that is not an address: the peer", Hops: 1, Peer: peer, Forwarded: []string{"198.51.100.7, unknown"}},
		{Name: "an entry that is empty: the peer", Hops: 1, Peer: peer, Forwarded: []string{"198.51.100.7,"}},
		{Name: "an empty header", Hops: 1, Peer: peer, Forwarded: []string{""}},
		{Name: "only the entry that counts is read", Hops: 1, Peer: peer, Forwarded: []string{"nonsense, ,, 198.51.100.7"}},
		{Name: "an entry with a port", Hops: 1, Peer: peer, Forwarded: []string{"198.51.100.7:5555"}},
		{Name: "an entry with a wrong port", Hops: 1, Peer: peer, Forwarded: []string{"198.51.100.7:99999"}},
		{Name: "an entry with a name for a port", Hops: 1, Peer: peer, Forwarded: []string{"198.51.100.7:http"}},
		{Name: "spaces and tabs", Hops: 1, Peer: peer, Forwarded: []string{" \t198.51.100.7 \t"}},
		{Name: "leading zeros are no address", Hops: 1, Peer: peer, Forwarded: []string{"198.051.100.7"}},
		{Name: "a short form is no address", Hops: 1, Peer: peer, Forwarded: []string{"198.51.7"}},
		{Name: "a number is no address", Hops: 1, Peer: peer, Forwarded: []string{"3325256711"}},
		{Name: "hexadecimal is no address", Hops: 1, Peer: peer, Forwarded: []string{"0xc6.0x33.0x64.0x07"}},
		{Name: "quotes are no address", Hops: 1, Peer: peer, Forwarded: []string{`"198.51.100.7"`}},
		{Name: "letters of other alphabets are no address", Hops: 1, Peer: peer, Forwarded: []string{"१९८.51.100.7"}},
		{Name: "an IPv6 address is its network", Peer: "[2001:db8:1:2:aaaa::1]:443"},
		{Name: "another address of that network", Peer: "[2001:db8:1:2:bbbb::9]:443"},
		{Name: "a shorter prefix", V6Prefix: 48, Peer: "[2001:db8:1:2:bbbb::9]:443"},
		{Name: "a prefix within a group", V6Prefix: 56, Peer: "2001:db8:1:2ff::9"},
		{Name: "IPv6 in brackets", Hops: 1, Peer: peer, Forwarded: []string{"[2001:db8:1:2::9]"}},
		{Name: "IPv6 in brackets with a port", Hops: 1, Peer: peer, Forwarded: []string{"[2001:db8:1:2::9]:5555"}},
		{Name: "IPv6 without brackets has no port", Hops: 1, Peer: peer, Forwarded: []string{"2001:db8:1:2::9:5555"}},
		{Name: "an open bracket", Hops: 1, Peer: peer, Forwarded: []string{"[2001:db8:1:2::9"}},
		{Name: "words behind a bracket", Hops: 1, Peer: peer, Forwarded: []string{"[2001:db8:1:2::9]x"}},
		{Name: "IPv4 in brackets", Hops: 1, Peer: peer, Forwarded: []string{"[198.51.100.7]"}},
		{Name: "capitals and zeros", Peer: "2001:0DB8:0001:0002:0000:0000:0000:0001"},
		{Name: "a network that begins with zeros", Peer: "[::1]:443"},
		{Name: "a zone", Peer: "[fe80::1%eth0]:443"},
		{Name: "an empty zone", Hops: 1, Peer: peer, Forwarded: []string{"fe80::1%"}},
		{Name: "IPv4 in IPv6", Peer: "[::ffff:198.51.100.7]:443"},
		{Name: "IPv4 in IPv6, in hexadecimal", Peer: "::ffff:c633:6407"},
		{Name: "a translated address stays IPv6", Peer: "64:ff9b::198.51.100.7"},
		{Name: "networks: the first from the right that is not ours", Networks: proxies, Peer: "10.0.0.2:80", Forwarded: []string{"6.6.6.6, 198.51.100.7, 10.1.1.1"}},
		{Name: "networks: a peer that is not ours is the client", Networks: proxies, Peer: peer, Forwarded: []string{"6.6.6.6"}},
		{Name: "networks: no header", Networks: proxies, Peer: "10.0.0.2:80"},
		{Name: "networks: all are ours", Networks: proxies, Peer: "10.0.0.2:80", Forwarded: []string{"10.2.2.2, 10.3.3.3"}},
		{Name: "networks: an entry that is not an address", Networks: proxies, Peer: "10.0.0.2:80", Forwarded: []string{"198.51.100.7, bad, 10.1.1.1"}},
		{Name: "networks: what is behind the client does not count", Networks: proxies, Peer: "10.0.0.2:80", Forwarded: []string{"bad, 198.51.100.7"}},
		{Name: "networks: IPv6", Networks: proxies, Peer: "[2001:db8:ffff:1::1]:80", Forwarded: []string{"2001:db8:1:2::9, 2001:db8:ffff::7"}},
		{Name: "networks: IPv4 in IPv6 is of the network of IPv4", Networks: proxies, Peer: "[::ffff:10.0.0.2]:80", Forwarded: []string{"198.51.100.7"}},
		{Name: "a Unix socket without hops", Peer: ""},
		{Name: "a Unix socket with networks", Networks: proxies, Peer: "@", Forwarded: []string{"198.51.100.7"}},
		{Name: "a Unix socket with hops", Hops: 1, Peer: "@", Forwarded: []string{"6.6.6.6, 198.51.100.7"}},
		{Name: "a Unix socket with hops and no header", Hops: 1, Peer: ""},
		{Name: "a Unix socket with hops and no address", Hops: 1, Peer: "", Forwarded: []string{"bad"}},
		{Name: "a long header", Hops: 1, Peer: peer, Forwarded: []string{strings.Repeat("6.6.6.6, ", 50) + "198.51.100.7"}},
	}
	for _, c := range cases {
		if c.V6Prefix == 0 {
			c.V6Prefix = rules.MaxV6Prefix
		}
		if c.Forwarded == nil {
			c.Forwarded = []string{}
		}
		a := rules.Addresses{Hops: c.Hops, V6Prefix: c.V6Prefix}
		for _, n := range c.Networks {
			a.Networks = append(a.Networks, netip.MustParsePrefix(n))
		}
		key, err := a.Key(c.Peer, c.Forwarded)
		c.Key, c.Error = key, err != nil
		f.vectors = append(f.vectors, c)
	}
	return f, nil
}

// keyVector is the input for a key, and the key.
type keyVector struct {
	Name   string   `json:"name"`
	Parts  []string `json:"parts"`
	Secret bool     `json:"secret,omitempty"`
	Key    string   `json:"key"`
	// Limits is the name of inline limits. States are then the names of the first two states of the key.
	Limits string   `json:"limits,omitempty"`
	States []string `json:"states,omitempty"`
}

func keys() (file, error) {
	f := file{name: "keys.json", about: "Keys that are combined, secret or long, and the names of the states of inline limits."}
	for _, c := range []keyVector{
		{Name: "as it is", Parts: []string{"ann"}},
		{Name: "128 bytes", Parts: []string{strings.Repeat("a", rules.MaxKey)}},
		{Name: "129 bytes", Parts: []string{strings.Repeat("a", rules.MaxKey+1)}},
		{Name: "bytes count, not letters", Parts: []string{strings.Repeat("ä", 65)}},
		{Name: "a secret", Parts: []string{"sk-12345"}, Secret: true},
		{Name: "two parts", Parts: []string{"ann", "198.51.100.7"}},
		{Name: "a separator in a part", Parts: []string{"a|b", "c"}},
		{Name: "a separator in the other part", Parts: []string{"a", "b|c"}},
		{Name: "an escaped separator in a part", Parts: []string{"a%7Cb", "c"}},
		{Name: "one part is not escaped", Parts: []string{"a|b%"}},
		{Name: "an empty part", Parts: []string{"", "c"}},
		{Name: "long parts", Parts: []string{strings.Repeat("a", 100), strings.Repeat("b", 100)}},
		{Name: "states of inline limits", Parts: []string{"acme"}, Limits: "api"},
		{Name: "a key that ends like a state", Parts: []string{"room#5"}, Limits: "api"},
		{Name: "a key that ends like a state and in #", Parts: []string{"room#16##"}, Limits: "api"},
		{Name: "a key that ends in another number", Parts: []string{"room#17"}, Limits: "api"},
		{Name: "a key that ends in #1", Parts: []string{"room#1"}, Limits: "api"},
		{Name: "a key that ends in #02", Parts: []string{"room#02"}, Limits: "api"},
		{Name: "a key that ends in #", Parts: []string{"room#"}, Limits: "api"},
	} {
		switch {
		case c.Secret:
			c.Key = rules.Digest(c.Parts[0])
		case len(c.Parts) == 1:
			c.Key = rules.Bounded(c.Parts[0])
		default:
			c.Key = rules.Bounded(rules.Combine(c.Parts...))
		}
		if c.Limits != "" {
			c.States = []string{rules.StateKey(c.Limits, c.Key, 1), rules.StateKey(c.Limits, c.Key, 2)}
		}
		f.vectors = append(f.vectors, c)
	}
	return f, nil
}

// trip is a list of calls through one breaker. Pause is the time in milliseconds for which the
// breaker stays open each time.
type trip struct {
	Name  string     `json:"name"`
	Pause int64      `json:"pause"`
	Steps []tripStep `json:"steps"`
}

// tripStep begins the call with the number Begin, or ends the call with the number End.
type tripStep struct {
	At      int64         `json:"at"`
	Begin   int           `json:"begin,omitempty"`
	Answer  string        `json:"answer,omitempty"`
	End     int           `json:"end,omitempty"`
	Outcome rules.Outcome `json:"outcome,omitempty"`
	State   rules.State   `json:"state"`
}

// plan returns the steps of calls in words: "at" milliseconds, then "+n" to begin call n, and "-n" with y, n or x to end
// it as answered, failed or abandoned. "*" is a whole failed call with a number of its own.
func plan(text string) (steps []tripStep) {
	at, own := int64(0), 1000
	outcomes := map[byte]rules.Outcome{'y': rules.Answered, 'n': rules.Failed, 'x': rules.Abandoned}
	for _, w := range strings.Fields(text) {
		switch w[0] {
		case '+':
			steps = append(steps, tripStep{At: at, Begin: number(w[1:])})
		case '-':
			steps = append(steps, tripStep{At: at, End: number(w[1 : len(w)-1]), Outcome: outcomes[w[len(w)-1]]})
		case '*', '/':
			o := rules.Failed
			if w[0] == '/' {
				o = rules.Answered
			}
			for range len(w) {
				own++
				steps = append(steps, tripStep{At: at, Begin: own}, tripStep{At: at, End: own, Outcome: o})
			}
		default:
			at = int64(number(w))
		}
	}
	return steps
}

// number returns the number in a word of a plan.
func number(w string) int {
	n, err := strconv.Atoi(w)
	if err != nil {
		panic(err)
	}
	return n
}

func breaker() (file, error) {
	f := file{name: "breaker.json", about: "Rows of calls, and whether the breaker lets them go."}
	for _, c := range []trip{
		{"five failures in a row", 1000, plan("0 **** 10 * 20 +1 1009 +2 1010 +3")},
		{"an answer between failures", 1000, plan("0 **** / **** / 5 * +1")},
		{"half of the last twenty calls", 1000, plan("0 * / * / * / * / * / * / * / * / * / 5 / * +1")},
		{"fewer than twenty calls", 1000, plan("0 **** / **** / * / / / / / +1")},
		{"failures that are more than twenty calls ago do not count", 1000, plan("0 **** / **** //////////////// * / * +1")},
		{"one probe at a time", 1000, plan("0 ***** 1000 +1 +2 1010 -1y +3 +4")},
		{"a probe that fails opens again", 1000, plan("0 ***** 1000 +1 1050 -1n 2049 +2 2050 +3 2060 -3y +4")},
		{"another pause", 800, plan("0 ***** 799 +1 800 +2")},
		{"a probe that is abandoned makes way for another", 1000, plan("0 ***** 1000 +1 1010 -1x 1010 +2 +3 -2y +4")},
		{"an abandoned call says nothing", 1000, plan("0 **** +1 -1x * +2")},
		{"a late failure of a call from before the opening does not open again", 1000, plan("0 +1 +2 ***** 1000 +3 -3y 1001 -1n -2n **** +4")},
		{"a late answer does not close", 1000, plan("0 +1 ***** 10 -1y +2")},
		{"outcomes from before the opening are forgotten", 1000, plan("0 ***** 1000 +1 -1y **** / +2")},
		{"calls under way fail together", 1000, plan("0 +1 +2 +3 +4 +5 +6 50 -1n -2n -3n -4n -5n -6n +7")},
	} {
		var b rules.Breaker
		tickets := map[int]rules.Ticket{}
		start := time.UnixMilli(noon)
		for i := range c.Steps {
			s := &c.Steps[i]
			now := start.Add(time.Duration(s.At) * time.Millisecond)
			if s.Begin > 0 {
				t := b.Begin(now)
				tickets[s.Begin], s.Answer = t, "skip"
				if t.Allowed {
					s.Answer = "call"
				}
				if t.Probe {
					s.Answer = "probe"
				}
			} else {
				b.End(tickets[s.End], now, s.Outcome, time.Duration(c.Pause)*time.Millisecond)
			}
			s.State = b.State()
		}
		f.vectors = append(f.vectors, c)
	}
	return f, nil
}

// memory is a list of uses of one cache. Its maximum time is in milliseconds.
type memory struct {
	Name  string       `json:"name"`
	Most  int64        `json:"most"`
	Steps []memoryStep `json:"steps"`
}

// memoryStep looks for a denial, or stores a reply that the server has sent.
type memoryStep struct {
	At     int64     `json:"at"`
	Policy string    `json:"policy,omitempty"`
	Key    string    `json:"key"`
	Class  string    `json:"class,omitempty"`
	Keep   string    `json:"keep,omitempty"`
	Member string    `json:"member,omitempty"`
	Mode   string    `json:"mode,omitempty"`
	TTL    int64     `json:"ttl,omitempty"`
	Cost   int64     `json:"cost"`
	Put    *[5]int64 `json:"put,omitempty"`
	Hit    *[5]int64 `json:"hit,omitempty"`
}

func put(at int64, key string, cost int64, reply ...int64) memoryStep {
	return memoryStep{At: at, Key: key, Cost: cost, Put: (*[5]int64)(reply)}
}

func get(at int64, key string, cost int64) memoryStep {
	return memoryStep{At: at, Key: key, Cost: cost}
}

// with returns the step s after change has changed it.
func with(s memoryStep, change func(*memoryStep)) memoryStep {
	change(&s)
	return s
}

func cache() (file, error) {
	f := file{name: "cache.json", about: "Denials that are repeated from memory."}
	for _, c := range []memory{
		{"a denial is repeated with what is left", 1000, []memoryStep{get(0, "a", 1), put(2000, "a", 1, 1, 2, 0, 58000, 118000), get(2100, "a", 1), get(2999, "a", 1), get(3000, "a", 1), get(3001, "a", 1)}},
		{"no longer than its wait", 1000, []memoryStep{put(0, "a", 1, 1, 2, 0, 250, 900), get(249, "a", 1), get(250, "a", 1)}},
		{"another cap", 200, []memoryStep{put(0, "a", 1, 1, 2, 0, 58000, 118000), get(199, "a", 1), get(200, "a", 1)}},
		{"off", 0, []memoryStep{put(0, "a", 1, 1, 2, 0, 58000, 118000), get(1, "a", 1)}},
		{"only the same key", 1000, []memoryStep{put(0, "a", 1, 1, 2, 0, 58000, 118000), get(1, "b", 1)}},
		{"a cost that is not less", 1000, []memoryStep{put(0, "a", 3, 1, 5, 2, 58000, 118000), get(1, "a", 2), get(1, "a", 3), get(1, "a", 4), get(1, "a", 5), get(1, "a", 6)}},
		{"a denial of a lower cost takes the place", 1000, []memoryStep{put(0, "a", 3, 1, 5, 2, 5000, 9000), put(100, "a", 1, 1, 5, 0, 800, 8900), get(150, "a", 1), get(150, "a", 3), get(900, "a", 3)}},
		{"an allowed call is not kept", 1000, []memoryStep{put(0, "a", 1, 0, 2, 0, -1, 118000), get(1, "a", 1)}},
		{"never and a block are not kept", 1000, []memoryStep{put(0, "a", 3, 1, 2, 2, -1, 0), get(1, "a", 3)}},
		{"costs of 0 and less", 1000, []memoryStep{put(0, "a", 1, 1, 2, 0, 58000, 118000), get(1, "a", 0), get(1, "a", -1), put(2, "b", 0, 1, 2, 0, 58000, 118000), get(3, "b", 1)}},
		{"each of policy, class, keep and member is part of the call", 1000, []memoryStep{
			put(0, "a", 1, 1, 2, 0, 58000, 118000), with(get(1, "a", 1), func(s *memoryStep) { s.Policy = "web" }), with(get(1, "a", 1), func(s *memoryStep) { s.Class = "batch" }),
			with(get(1, "a", 1), func(s *memoryStep) { s.Keep = "5" }), with(get(1, "a", 1), func(s *memoryStep) { s.Member = "m" }), get(1, "a", 1),
		}},
		{"calls with a mode and reservations ask the server, and are not kept", 1000, []memoryStep{
			put(0, "a", 1, 1, 2, 0, 58000, 118000), with(get(1, "a", 1), func(s *memoryStep) { s.Mode = "PEEK" }), with(get(1, "a", 1), func(s *memoryStep) { s.Mode = "FORCE" }),
			with(get(1, "a", 1), func(s *memoryStep) { s.Mode = "PARTIAL" }), with(get(1, "a", 1), func(s *memoryStep) { s.TTL = 30_000 }), get(1, "a", 1),
			with(put(2, "b", 1, 1, 2, 0, 58000, 118000), func(s *memoryStep) { s.Mode = "PEEK" }), get(3, "b", 1),
		}},
		{"a reset that is over is 0", 1000, []memoryStep{put(0, "a", 1, 1, 2, 0, 5000, 100), get(200, "a", 1)}},
		{"no reset", 1000, []memoryStep{put(0, "a", 1, 1, 2, 0, 5000, -1), get(200, "a", 1)}},
		{"a wait of 0 is not kept", 1000, []memoryStep{put(0, "a", 1, 1, 2, 0, 0, 100), get(0, "a", 1)}},
	} {
		kept := rules.NewCache(time.Duration(c.Most) * time.Millisecond)
		for i := range c.Steps {
			s := &c.Steps[i]
			now := time.UnixMilli(noon + s.At)
			scope := rules.Scope{Policy: s.Policy, Key: s.Key, Class: s.Class, Keep: s.Keep, Member: s.Member}
			r := rules.Request{Key: s.Key, Cost: s.Cost, Mode: rules.Mode(s.Mode), TTL: time.Duration(s.TTL) * time.Millisecond}
			if !r.Plain() {
				continue
			}
			if s.Put != nil {
				d, err := rules.Read(list(s.Put[:]))
				if err != nil {
					return f, err
				}
				kept.Put(scope, s.Cost, d, now)
			} else if d, ok := kept.Get(scope, s.Cost, now); ok {
				s.Hit = &[5]int64{d.Refused, d.Limit, d.Remaining, millis(d.RetryAfter), millis(d.ResetAfter)}
			}
		}
		f.vectors = append(f.vectors, c)
	}
	return f, nil
}

// millis returns a time in milliseconds, or -1 for [rules.None].
func millis(d time.Duration) int64 {
	if d == rules.None {
		return -1
	}
	return d.Milliseconds()
}

// list returns numbers as a reply has them.
func list(numbers []int64) []any {
	made := make([]any, len(numbers))
	for i, n := range numbers {
		made[i] = n
	}
	return made
}

// judgement is an error reply, or a fault, and the verdict on it.
type judgement struct {
	Name    string        `json:"name"`
	Reply   string        `json:"reply,omitempty"`
	Fault   rules.Fault   `json:"fault,omitempty"`
	Phase   rules.Phase   `json:"phase"`
	ID      bool          `json:"id,omitempty"`
	Verdict rules.Verdict `json:"verdict"`
	Failure bool          `json:"failure"`
	Retry   bool          `json:"retry"`
}

func replies() (file, error) {
	f := file{name: "errors.json", about: "Replies that are errors, and calls without a reply."}
	for _, reply := range []string{
		"LOADING cellserver is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "OOM command not allowed when used memory > 'maxmemory'.",
		"BUSY The server is busy running a script.", "UNAVAILABLE The store does not answer", "MISCONF Errors writing to the append only file",
		"NOREPLICAS Not enough good replicas to write.", "CLUSTERDOWN The cluster is down", "TRYAGAIN Multiple keys request during rehashing of slot",
		"ERR max number of clients reached", "IDENDED The reservation has ended",
		"NOPOLICY No such policy 'api'", "NOPERM User ann has no permissions to run the 'rl.use' command", "NOAUTH Authentication required.",
		"WRONGPASS invalid username-password pair or user is disabled.",
		"WRONGTYPE Operation against a key holding the wrong kind of value", "ERR wrong number of arguments for 'rl.use' command", "ERR syntax error",
		"ERR syntax error near 'ID'", "ERR syntax error near 'CLASS'", "ERR unknown command 'RL.USE', with args beginning with: ", "IDREUSED ID was used with other arguments",
		"NOCLASS No such class 'batch'", "CROSSSLOT Keys in request don't hash to the same slot", "MOVED 3999 127.0.0.1:6381", "LOADINGS no such code", "",
	} {
		for _, phase := range []rules.Phase{rules.Start, rules.Call} {
			for _, id := range []bool{false, true} {
				if phase == rules.Start && id {
					continue
				}
				v, failure := rules.Judge(reply, phase, id)
				name := fmt.Sprintf("%q at %s", reply, phase)
				if id {
					name += " with ID"
				}
				f.vectors = append(f.vectors, judgement{Name: name, Reply: reply, Phase: phase, ID: id, Verdict: v, Failure: failure})
			}
		}
	}
	for _, fault := range []rules.Fault{rules.Timeout, rules.Refused, rules.Broken} {
		for _, id := range []bool{false, true} {
			name := string(fault)
			if id {
				name += " with ID"
			}
			f.vectors = append(f.vectors, judgement{
				Name: name, Fault: fault, Phase: rules.Call, ID: id, Verdict: rules.Unavailable, Failure: true, Retry: rules.Retries(fault, id),
			})
		}
	}
	return f, nil
}

// share is a clause, and the share that each of several instances gets of it.
type share struct {
	Clause    string `json:"clause"`
	Instances int64  `json:"instances"`
	Share     string `json:"share"`
	Limit     int64  `json:"limit"`
	Local     string `json:"local"`
}

func shares() (file, error) {
	f := file{name: "share.json", about: "The clause of the limiter in the process when the server is away."}
	for _, c := range []share{
		{Clause: "TB 200 100 1", Instances: 1},
		{Clause: "TB 200 100 1", Instances: 4},
		{Clause: "TB 7 3 1", Instances: 2},
		{Clause: "TB 2 1 60", Instances: 2},
		{Clause: "TB 2 1 60", Instances: 100},
		{Clause: "TB 0 1 60", Instances: 3},
		{Clause: "TB 10 5 1 INTERVAL", Instances: 2},
		{Clause: "TB 10 5 1 DEBT", Instances: 2},
		{Clause: "TB 10 5 1 INIT 3", Instances: 2},
		{Clause: "SW 100 60", Instances: 3},
		{Clause: "SW 100 60 FIXED", Instances: 3},
		{Clause: "SW 100 60 COUNTER", Instances: 3},
		{Clause: "SW 100 60 LOG", Instances: 3},
		{Clause: "SW 100 60 BUCKETS 6", Instances: 3},
		{Clause: "SW 100 60 FIXED ANCHOR KEY", Instances: 3},
		{Clause: "SW 0 60", Instances: 3},
		{Clause: "SW 10000 MONTH ZONE Europe/Berlin FROM 15", Instances: 2},
		{Clause: "SW 1000 day", Instances: 2},
		{Clause: "SW 1000 WEEK", Instances: 2},
		{Clause: "SW 1000 YEAR", Instances: 2},
		{Clause: "CL 15 30 60", Instances: 2},
		{Clause: "CL 15 30 60", Instances: 32},
		{Clause: "CL -1 30 60", Instances: 2},
		{Clause: "CL 0 1 1", Instances: 2},
		{Clause: "CC 10 30", Instances: 4},
		{Clause: "CC 1 30", Instances: 4},
		{Clause: "NONE", Instances: 4},
		{Clause: "TB 60 60 1m CALLS", Instances: 4},
		{Clause: "SW 9223372036854775807 1h", Instances: 2},
		{Clause: "tb 200 100 1500ms", Instances: 0},
	} {
		parsed, err := rules.ParseClause(c.Clause, time.Second)
		if err != nil {
			return f, err
		}
		shared := parsed.Share(c.Instances)
		local := shared.Local()
		c.Share, c.Local, c.Limit = shared.String(), local.String(), local.MostUnits()
		f.vectors = append(f.vectors, c)
	}
	return f, nil
}
