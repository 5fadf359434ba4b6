package policies

import (
	"strconv"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/rls"
)

// listed are rules of the files of rls-config, and behind them limits of the file of limitador-limits.
type listed struct {
	rules  []*rls.Rule
	limits []*limitador.Limit
	// The configurations have all of them. They are nil without the options.
	ruleFiles *rls.Config
	limitFile *limitador.Config
}

// listedOf returns all rules and limits in force.
func listedOf(s *command.Server) listed {
	if s.Options.Policies == nil {
		return listed{}
	}
	c, of := rulesOf(s), s.Options.Policies.Limits()
	return listed{rules: c.Rules(), limits: of.Limits(), ruleFiles: c, limitFile: of}
}

// none reports whether no files were loaded.
func (l *listed) none() bool { return l.ruleFiles == nil && l.limitFile == nil }

func (l *listed) len() int { return len(l.rules) + len(l.limits) }

// part returns the number of rules and limits of the domain, or of all, and the part of them to show. ok is false if
// there is no such domain.
func (l *listed) part(which *whichRules) (total int, part listed, ok bool) {
	part, ok = *l, true
	if which.domain != nil {
		part.rules, ok = l.ruleFiles.RulesOf(which.domain)
		part.limits = l.limitFile.Namespace(which.domain)
		ok = ok || part.limits != nil
	}
	total = part.len()
	skip := min(which.offset, int64(len(part.rules)))
	part.rules = part.rules[skip:]
	part.limits = part.limits[min(which.offset-skip, int64(len(part.limits))):]
	part.rules = part.rules[:min(which.count, int64(len(part.rules)))]
	part.limits = part.limits[:min(which.count-int64(len(part.rules)), int64(len(part.limits)))]
	return total, part, ok
}

// size returns the approximate maximum size of what write writes of all, in bytes.
func (l *listed) size() (size int) {
	const other = 256 // the names of the fields, and what is short
	const each = 16   // what a text has beside its bytes
	for _, r := range l.rules {
		size += other + len(r.Domain) + len(r.Policy) + len(r.Limit.Name) + len(r.File)
		for _, list := range [][]string{r.Path, r.Limit.Replaces} {
			for _, text := range list {
				size += len(text) + each
			}
		}
	}
	for _, is := range l.limits {
		size += other + len(is.Namespace) + len(is.Policy) + len(is.File) + int(is.Bytes()) + each*(len(is.Conditions)+len(is.Variables))
	}
	return size
}

// write writes the rule or limit of index i.
func (l *listed) write(w *resp.Writer, i int) {
	if i < len(l.rules) {
		writeRule(w, l.rules[i])
		return
	}
	of := l.limits[i-len(l.rules)]
	is := shownRule{
		domain: of.Namespace, policy: of.Policy, limit: of.Limits.Text[0], flags: []string{"limitador"},
		place: of.File + ":" + strconv.Itoa(of.Line),
	}
	for _, e := range of.Conditions {
		is.steps = append(is.steps, e.String())
	}
	for _, e := range of.Variables {
		is.steps = append(is.steps, e.String())
	}
	if of.Name != nil {
		is.name = *of.Name
	}
	is.write(w)
}

// shownRule is a rule or a limit as a reply shows it.
type shownRule struct {
	domain, policy, limit, unit, name, place string
	steps, replaces, flags                   []string
}

func (is *shownRule) write(w *resp.Writer) {
	text := func(name, value string) {
		w.BulkString(name)
		w.BulkString(value)
	}
	list := func(name string, of []string) {
		w.BulkString(name)
		w.Array(len(of))
		for _, is := range of {
			w.BulkString(is)
		}
	}
	w.Map(9)
	text("domain", is.domain)
	list("steps", is.steps)
	text("policy", is.policy)
	text("limit", is.limit)
	text("unit", is.unit)
	text("name", is.name)
	list("replaces", is.replaces)
	list("flags", is.flags)
	text("place", is.place)
}
