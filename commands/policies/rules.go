package policies

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/commands/internal/elements"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/rls"
)

const (
	defaultRules = 100  // the number of rules that RL.RULES shows without COUNT
	maxRules     = 1000 // the maximum of COUNT
	// maxDescriptor is the maximum number of bytes of a domain and entries.
	maxDescriptor = 64 << 10
)

const (
	errNoRules        resp.Error = "ERR there are no rules: see the option rls-config"
	errNothingListed  resp.Error = "ERR there are no rules: see the options rls-config and limitador-limits"
	errLongDescriptor resp.Error = "ERR a descriptor is too long, at most 65536 bytes"
)

// rulesCommands returns the entries of the commands that show the rules of files of other rate limiters. Each server
// has rules of its own, so these commands need no store.
func rulesCommands() []*command.Command {
	return []*command.Command{
		{
			Name: "rl.rules", Arity: -1, Flags: show,
			Summary: "Lists the rules that were read from the files of rls-config and limitador-limits.", Syntax: "[domain] [OFFSET offset] [COUNT count]",
			Complexity: "O(N) of the rules that it shows",
			Reply:      "a map: total, the number of rules, and rules, an array of maps: domain, steps, policy, limit, unit, name, replaces, flags, place",
			Run:        showRules, ReplySize: rulesSize,
		},
		{
			Name: "rl.match", Arity: -3, Flags: show,
			Summary: "Says which rule of the files of rls-config applies to a descriptor, and under which policy and key it is counted.",
			Syntax:  "domain key=value [key=value ...]", Complexity: "O(N) of the steps with a star, for each entry",
			Reply: "a map: text, policy, key, rule as RL.RULES shows it, and steps, an array of maps: entry, step, by, shared", Run: match,
		},
	}
}

// rulesOf returns the rules in force; nil if there are none.
func rulesOf(s *command.Server) *rls.Config {
	if s.Options.Policies == nil {
		return nil
	}
	_, c := s.Options.Policies.InForce()
	return c
}

// whichRules says which rules to show.
type whichRules struct {
	domain        []byte // the domain whose rules are shown; nil for all domains
	offset, count int64
}

// parseRules parses `[domain] [OFFSET offset] [COUNT count]`. The first argument is the domain unless it is the name of an
// option and the number of arguments is even. The error is "" on success.
func parseRules(args [][]byte) (which whichRules, err resp.Error) {
	which.count = defaultRules
	isOption := func(word []byte) bool { return arg.IsWord(word, "OFFSET") || arg.IsWord(word, "COUNT") }
	if len(args) > 0 && (len(args)%2 == 1 || !isOption(args[0])) {
		which.domain, args = args[0], args[1:]
	}
	var offset, count bool
	for len(args) > 0 {
		switch {
		case len(args) > 1 && arg.IsWord(args[0], "OFFSET"):
			if err = arg.Once(args[0], &offset); err == "" {
				err = arg.AtLeast(args[1], "OFFSET", 0, &which.offset)
			}
		case len(args) > 1 && arg.IsWord(args[0], "COUNT"):
			if err = arg.Once(args[0], &count); err == "" {
				err = parseRulesCount(args[1], &which.count)
			}
		default:
			err = resp.SyntaxNear(args[0])
		}
		if err != "" {
			return which, err
		}
		args = args[2:]
	}
	return which, ""
}

func parseRulesCount(b []byte, n *int64) resp.Error {
	v, ok := arg.Int(b)
	if !ok || v < 1 || v > maxRules {
		return resp.Argument(resp.ErrNotInteger, "COUNT", b, "from 1 to "+strconv.Itoa(maxRules))
	}
	*n = v
	return ""
}

// showRules is the Run function of RL.RULES. It replies with rules in the order of the files.
func showRules(c *command.Call) {
	which, err := parseRules(c.Args[1:])
	if err != "" {
		c.Fail(c.Usage(err))
		return
	}
	all := listedOf(c.Server)
	if all.none() {
		c.Fail(errNothingListed)
		return
	}
	total, part, ok := all.part(&which)
	if !ok {
		c.Fail(resp.Error("ERR No such domain '" + string(command.Echo(which.domain, command.MaxEcho)) + "'"))
		return
	}
	outside(c, func() {
		reply := elements.WholeOf(c.W, part.len())
		c.W.Map(2)
		c.W.BulkString("total")
		c.W.Int(int64(total))
		c.W.BulkString("rules")
		c.W.Array(part.len())
		for i := range part.len() {
			part.write(c.W, i)
			if !reply.More() {
				c.W.Cut(reply.Mark)
				c.Fail(errSmallerCount)
				return
			}
		}
	})
}

// rulesSize is the ReplySize function of RL.RULES. It returns the approximate maximum size of the reply in bytes.
func rulesSize(cl *command.Client, _ env.Store, _ *command.Command, args [][]byte) int {
	which, err := parseRules(args[1:])
	if err != "" {
		return 0
	}
	all := listedOf(cl.Server)
	_, part, _ := all.part(&which)
	return min(part.size(), command.MaxReply)
}

// ruleFlags are the flags of a rule, in the order in which they are shown.
var ruleFlags = [...]struct {
	name string
	is   func(r *rls.Rule) bool
}{
	{"unlimited", func(r *rls.Rule) bool { return r.Limit.Unlimited }},
	{"shadow", func(r *rls.Rule) bool { return r.Shadow }},
	{"quota", func(r *rls.Rule) bool { return r.Quota }},
	{"shared", func(r *rls.Rule) bool { return r.Shared }},
	{"metadata", func(r *rls.Rule) bool { return r.Metadata != nil }},
}

func writeRule(w *resp.Writer, r *rls.Rule) {
	is := shownRule{
		domain: r.Domain, steps: r.Path, policy: r.Policy, limit: r.Limits.Text[0], name: r.Limit.Name,
		replaces: r.Limit.Replaces, place: r.File + ":" + strconv.Itoa(r.Line),
	}
	for _, f := range ruleFlags {
		if f.is(r) {
			is.flags = append(is.flags, f.name)
		}
	}
	if r.Limit.Unit.Valid() {
		is.unit = r.Limit.Unit.String()
	}
	is.write(w)
}

// parseEntries parses args, each of which is `key=value`. The first '=' ends the key. The error is "" on success.
func parseEntries(args [][]byte) (entries []rls.Entry, err resp.Error) {
	for _, word := range args {
		key, value, ok := bytes.Cut(word, []byte{'='})
		if !ok || len(key) == 0 {
			return nil, resp.SyntaxNear(word) + ": an entry is key=value"
		}
		entries = append(entries, rls.Entry{Key: key, Value: value})
	}
	return entries, ""
}

// match is the Run function of RL.MATCH. It replies with the rule that applies to a descriptor.
func match(c *command.Call) {
	entries, err := parseEntries(c.Args[2:])
	if err != "" {
		c.Fail(c.Usage(err))
		return
	}
	size := 0
	for _, word := range c.Args[1:] {
		size += len(word)
	}
	if size > maxDescriptor {
		c.Fail(errLongDescriptor)
		return
	}
	rules := rulesOf(c.Server)
	outside(c, func() {
		is, err := rules.Lookup(c.Args[1], entries)
		switch {
		case errors.Is(err, rls.ErrNoConfig):
			c.Fail(errNoRules)
		case err != nil:
			c.Fail(resp.Error("ERR " + err.Error()))
		default:
			writeLookup(c.W, &is, c.Args[2:])
		}
	})
}

// writeLookup replies with l, the result of a lookup. words are the entries that were looked up.
func writeLookup(w *resp.Writer, l *rls.Lookup, words [][]byte) {
	w.Map(5)
	w.BulkString("text")
	w.BulkString(l.Sentence())
	w.BulkString("policy")
	if l.Rule == nil {
		w.Null()
		w.BulkString("key")
		w.Null()
		w.BulkString("rule")
		w.Null()
	} else {
		w.BulkString(l.Rule.Policy)
		w.BulkString("key")
		w.Bulk(l.Key)
		w.BulkString("rule")
		writeRule(w, l.Rule)
	}
	w.BulkString("steps")
	w.Array(len(l.Steps))
	for i := range l.Steps {
		s := &l.Steps[i]
		w.Map(4)
		w.BulkString("entry")
		w.Bulk(words[i])
		w.BulkString("step")
		w.BulkString(s.Text)
		w.BulkString("by")
		w.BulkString(s.Way.String())
		w.BulkString("shared")
		w.Int(elements.OneIf(s.Shared))
	}
}
