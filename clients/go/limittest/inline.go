package limittest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cellserver/cellserver/clients/go/internal/rules"
	"github.com/cellserver/cellserver/clients/go/limit"
)

// ofCalls are the words that end the clause of an inline limit.
var ofCalls = []string{string(limit.Peek), string(limit.Partial), string(limit.Force), "ID", "RESERVE", "MS"}

// inline answers TB.ACQUIRE and SW.ALLOW: as RL.USE of a policy that has its clause as its name, which is made here. Times are in
// milliseconds.
func (f *Fake) inline(words []string) (any, error) {
	clause, numbers := []string{string(rules.Bucket)}, 3
	if words[0] == "SW.ALLOW" {
		clause, numbers = []string{string(rules.Window)}, 2
	}
	const key = 1
	if len(words) < key+1+numbers+1 {
		return nil, unknown
	}
	clause = append(clause, words[key+1:key+1+numbers]...)
	cost, rest := words[key+1+numbers], words[key+1+numbers+1:]
	end := slices.IndexFunc(rest, func(w string) bool { return slices.Contains(ofCalls, w) })
	if end < 0 {
		end = len(rest)
	}
	name := strings.Join(append(clause, rest[:end]...), " ")
	if _, ok := f.policies[name]; !ok {
		c, err := rules.ParseClause(name, time.Millisecond)
		if err != nil {
			return nil, limit.ReplyError("ERR " + err.Error())
		}
		f.policies[name] = &policy{clauses: []rules.Clause{c}, texts: []any{c.String()}, keys: map[string]*account{}}
	}
	return f.use(append([]string{"RL.USE", name, words[key], cost}, rest[end:]...))
}

// reset answers RL.RESET and DEL. It forgets what a key has used, of all policies.
func (f *Fake) reset(key string) (any, error) {
	if f.away {
		return nil, context.DeadlineExceeded
	}
	forgotten := int64(0)
	for _, p := range f.policies {
		if _, ok := p.keys[key]; ok {
			forgotten++
			delete(p.keys, key)
		}
	}
	return forgotten, nil
}
