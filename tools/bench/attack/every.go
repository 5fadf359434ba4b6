package attack

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cellserver/cellserver/commands"
	"github.com/cellserver/cellserver/syntax"
)

// everyCommand returns the attack that calls all commands.
func everyCommand() []Attack {
	return []Attack{{
		Name: "every-command",
		About: "500 clients call all commands with arguments as many and as long as they may be, " +
			"and one call of ten is not read",
		CellOnly:  true,
		maxMemory: [2]int{64, 256},
		fill: func(ctx context.Context, s *scene) error {
			return s.prepare(ctx, func(c *client) error {
				_, err := c.must(append([]string{"RL.POLICY", "SET", "api", "LIMITS"}, clauses()...)...)
				return err
			})
		},
		run: callEvery,
	}}
}

// leftOut are commands that would end the attack instead of harming the server: they change the
// server or the connection, or free memory that other clients have filled.
var leftOut = []string{
	"shutdown", "debug", "replicaof", "slaveof", "failover", "psync", "sync", "replconf", "monitor", "quit", "reset",
	"hello", "auth", "select", "save", "bgsave", "bgrewriteaof", "flushall", "flushdb", "script|flush", "function|flush",
	"script|debug", "client|kill", "client|pause", "client|reply", "client|unblock", "client|tracking", "config|set",
	"config|rewrite", "config|reload", "config|resetstat", "acl|load", "acl|save", "multi", "exec", "discard", "watch",
	"rl.block", "rl.policy|del", "rl.policy|reload", "rl.policy|apply",
}

// unanswered are the commands that do not have exactly one reply.
var unanswered = []string{"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"}

// mayBeCut reports whether the server may close the connection during a call although its client
// reads. A blocked call holds memory meanwhile, and the server closes the clients that hold the
// most.
func (d *described) mayBeCut() bool { return hasTimeout(d.args) }

// hasTimeout reports whether one of args, or of their parts, is a timeout.
func hasTimeout(args []syntax.Argument) bool {
	return slices.ContainsFunc(args, func(a syntax.Argument) bool { return a.Name == "timeout" || hasTimeout(a.Sub) })
}

// described is a command with the arguments of its syntax line.
type described struct {
	words []string // the name of the command, and the name of the subcommand if it has one
	group string
	args  []syntax.Argument
}

// describe returns all commands except those in leftOut, and except containers, which have only
// subcommands.
func describe() (all []described) {
	containers := map[string]bool{}
	table := commands.NewTable().All()
	for _, c := range table {
		if name, _, is := strings.Cut(c.Name, "|"); is {
			containers[name] = true
		}
	}
	for _, c := range table {
		if !containers[c.Name] && !slices.Contains(leftOut, c.Name) {
			all = append(all, described{strings.Split(c.Name, "|"), c.Group, syntax.Parse(c.Syntax)})
		}
	}
	return all
}

// commandSize is about the length of the longest calls. It is far below proto-max-bulk-len and
// client-query-buffer-limit, so that the server has no reason to close the connection.
const commandSize = 1 << 20

// shape divides the size of a call among its arguments. An argument that may be repeated is
// repeated as many times as times says, and a text has up to length bytes.
type shape struct{ times, length int }

// call returns a call with its arguments filled in. Half of the calls have all optional arguments,
// and the other half omits some, because the server refuses calls whose options contradict each
// other.
func (d *described) call(r *rand.Rand, client int) []string {
	shapes := []shape{{1, commandSize}, {16, commandSize / 16}, {1000, commandSize / 1000}, {20_000, 40}}
	w := writer{r: r, shape: shapes[r.IntN(len(shapes))], group: d.group, client: client, all: r.IntN(2) == 0}
	words := slices.Clone(d.words)
	return append(words, w.sequence(d.args)...)
}

// writer generates the arguments of one call.
type writer struct {
	r      *rand.Rand
	shape  shape
	group  string
	client int
	all    bool // whether all optional arguments are written
}

// sequence generates arguments that follow each other. Unless w.all is set, it omits each optional
// argument with a probability of one half.
func (w *writer) sequence(args []syntax.Argument) (words []string) {
	counted := -1 // index of the argument numkeys, or -1
	for _, a := range args {
		if a.Optional && !w.all && w.r.IntN(2) == 0 {
			continue
		}
		begin := len(words)
		times := 1
		if a.Multiple {
			times = w.times(a)
		}
		whole := w.shape
		w.shape.length = max(1, whole.length/wordsOf(a))
		for range times {
			words = append(words, w.one(a)...)
		}
		w.shape = whole
		switch {
		case a.Name == "numkeys":
			counted = begin
		case counted >= 0 && a.Kind == "key":
			words[counted] = strconv.Itoa(len(words) - begin)
			counted = -1
		}
	}
	if counted >= 0 {
		words[counted] = "0"
	}
	return words
}

// times returns the number of repetitions of the argument a. Keys are repeated less often, because
// each has the maximum length.
func (w *writer) times(a syntax.Argument) int {
	switch {
	case a.Name == "clause":
		return 1
	case a.Kind == "key":
		return min(w.shape.times, commandSize/longestKey)
	}
	return max(1, w.shape.times/wordsOf(a))
}

// wordsOf returns the largest number of words of one repetition of a, so that arguments which are repeated together
// make a call no longer than others.
func wordsOf(a syntax.Argument) (n int) {
	switch a.Kind {
	case "oneof":
		for _, sub := range a.Sub {
			n = max(n, wordsOf(sub))
		}
	case "block":
		for _, sub := range a.Sub {
			n += wordsOf(sub)
		}
	case "pure-token":
		return 1
	default:
		n = 1
	}
	if a.Token != "" {
		n++
	}
	return max(1, n)
}

// one generates one repetition of an argument.
func (w *writer) one(a syntax.Argument) (words []string) {
	if a.Token != "" {
		words = append(words, a.Token)
	}
	switch a.Kind {
	case "pure-token":
		return words
	case "oneof":
		if len(a.Sub) > 0 {
			return append(words, w.one(a.Sub[w.r.IntN(len(a.Sub))])...)
		}
		return words
	case "block":
		return append(words, w.sequence(a.Sub)...)
	case "key":
		return append(words, w.key())
	}
	if a.Name == "clause" {
		return append(words, clauses()...)
	}
	return append(words, w.value(a))
}

// longestKey is the maximum length of a limiter's key, less the prefix that a policy adds.
const longestKey = 16_000

// key returns one of a few keys for a group of commands, so that most commands find a value of the
// right type.
func (w *writer) key() string {
	name := w.group + strconv.Itoa(w.r.IntN(8)) + ":" + strconv.Itoa(w.client%4)
	return name + strings.Repeat("k", longestKey-len(name))
}

// values maps the names of arguments that are not text to their values.
var values = map[string]string{
	"numkeys": "0", "cursor": "0", "index": "0", "start": "0", "stop": "-1", "end": "-1", "offset": "0", "min": "-inf",
	"max": "+inf", "score": "1.5", "increment": "1", "decrement": "1", "timeout": "0.05", "numreplicas": "0",
	"seconds": "1000", "milliseconds": "1000000", "unix-time": "0", "unix-time-seconds": "4102444800",
	"unix-time-milliseconds": "4102444800000", "quantity": "1", "limit": "1000000", "capacity": "1000000",
	"window": "86400", "period": "86400", "lease": "86400", "count": "10000", "max_burst": "1000000", "slots": "60",
	"duration": "60", "factor": "2", "tokens": "1", "mode": "FIXED", "policy": "api", "quantities": "1", "samples": "0",
	"bits": "4096", "group": "api", "refusals": "5", "block": "60", "time": "86400", "class": "batch", "share%": "30%", "units": "1", "protover": "3", "type": "string", "client-id": "1", "ttl": "86400", "actual": "1", "sha1": strings.Repeat("0", 40),
}

// value generates an argument that is neither a key nor a token.
func (w *writer) value(a syntax.Argument) string {
	if known, is := values[a.Name]; is {
		return known
	}
	switch a.Name {
	case "script", "function":
		return "return #ARGV --" + strings.Repeat("x", w.shape.length)
	case "id", "token": // the server refuses a longer argument
		return strconv.Itoa(w.r.IntN(1_000_000))
	case "destination", "source":
		return w.key()
	}
	if a.Kind == "integer" {
		return strconv.Itoa(1 + w.r.IntN(1000))
	}
	return large(1+w.r.IntN(w.shape.length), w.r.IntN(26))
}

// clauses returns as many limits as a policy may have.
func clauses() (words []string) {
	for i := range 16 {
		words = append(words, "SW", strconv.Itoa(1_000_000+i), "86400")
	}
	return words
}

// callEvery lets each client call all commands in a random order until the time is over.
func callEvery(ctx context.Context, s *scene) error {
	all := describe()
	var mu sync.Mutex
	served := map[string]bool{}
	steady, cancel := context.WithTimeout(ctx, 5*s.span())
	defer cancel()
	s.crowd(ctx, s.pick(60, 500), func(ctx context.Context, i int, first *client) {
		r := s.random(i)
		c := first
		defer func() { c.close() }()
		before := false // whether the call before on this connection may have been cut
		for {
			for _, at := range r.Perm(len(all)) {
				if steady.Err() != nil {
					return
				}
				words := all[at].call(r, i)
				if r.IntN(10) == 0 || slices.Contains(unanswered, all[at].words[0]) {
					_ = unread(appendCommand(nil, words...))(ctx, s, c, r) // the connection cannot be used after that
					c.close()
					next, err := dial(ctx, s.server.address)
					if err != nil {
						s.judge(ctx, nil, err)
						return
					}
					c, before = next, false
					continue
				}
				reply, err := c.do(words...)
				mayBeCut := all[at].mayBeCut()
				if err == nil || !mayBeCut && !before {
					s.judge(ctx, &reply, err)
				}
				if err != nil {
					return
				}
				before = mayBeCut
				s.count(&reply)
				if !reply.refused() {
					mu.Lock()
					served[strings.Join(all[at].words, " ")] = true
					mu.Unlock()
				}
			}
		}
	})
	var never []string
	for _, d := range all {
		if name := strings.Join(d.words, " "); !served[name] && !slices.Contains(unanswered, name) {
			never = append(never, name)
		}
	}
	s.note("%d of %d commands were served; not %s", len(served), len(all), strings.Join(never, ", "))
	return nil
}
