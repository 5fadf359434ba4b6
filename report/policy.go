package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/acl"
)

// PolicyState holds the reply of RL.EXPLAIN for a key of a policy: the limits that apply to the key,
// and the entries of the policy from which they come.
type PolicyState struct {
	Policy string `json:"policy"`
	Key    Key    `json:"key"` // the key that calls of RL.USE name
	Text   Key    `json:"text"`
	// Applies is what applies to the key: exemption, block, ban, override or default. Setting is
	// empty for default, and has only Until for a ban.
	Applies string `json:"applies"`
	Setting
	Comment Key `json:"comment"` // the reason of a block or an exemption, or the comment of an override
	// Boost is the boost that multiplies the limits by Factor. It is nil if no boost applies.
	Boost  *Setting `json:"boost"`
	Factor Key      `json:"factor,omitempty"`
	Shadow bool     `json:"shadow"` // whether every call is allowed (SHADOW)
	Count  bool     `json:"count"`  // whether denied calls are charged, too (COUNT)
	// Answer is the reply of RL.USE with PEEK: five integers, with times in seconds.
	Answer  []int64  `json:"answer"`
	Clauses []Clause `json:"clauses"`
	Try     []Clause `json:"try,omitempty"` // the clauses of the candidate, if it is tried for the key
	// Error is the reason why RL.EXPLAIN could not be used: "NOPERM ...".
	Error string `json:"error,omitempty"`
}

// Setting describes an entry for a pattern of keys.
type Setting struct {
	Pattern *Key  `json:"pattern"`
	Until   int64 `json:"until"`        // end of the entry in Unix milliseconds; 0 if it is permanent
	By      Key   `json:"by,omitempty"` // the user and address that set the entry, if they are known and may be shown
	At      int64 `json:"at,omitempty"` // the time at which the entry was set, if it is known and may be shown
}

// Clause is one limit, with the units in use.
type Clause struct {
	Clause  Key   `json:"clause"` // the clause, with the unit of its duration: "TB 200 100 1s"
	Key     Key   `json:"key"`    // the key that holds the state of the clause
	Limited bool  `json:"limited"`
	Limit   int64 `json:"limit"`
	Used    int64 `json:"used"`
	RetryMs int64 `json:"retry_ms"` // time until a call would pass; -1 means at once, or never if Limited is true
	ResetMs int64 `json:"reset_ms"`
	// Reservations is the number of live reservations of the key, Held the number of their units, and
	// EndsMs the time until the first of them ends by itself.
	Reservations int64 `json:"reservations,omitempty"`
	Held         int64 `json:"held,omitempty"`
	EndsMs       int64 `json:"ends_ms,omitempty"`
}

// changesAsked is the number of changes of a pattern that are searched for the one that set an
// entry. Changes of other kinds may be newer.
const changesAsked = 20

// policy explains the key of a policy to u. It returns nil if key does not have the state of a
// policy.
func (r *Reporter) policy(u *acl.User, from string, db int, key string) (*PolicyState, error) {
	name, of, is := r.src.Policy(key)
	if !is {
		return nil, nil //nolint:nilnil // most keys are of no policy
	}
	p := &PolicyState{Policy: name, Key: Key(of), Answer: []int64{}, Clauses: []Clause{}}
	reply, err := r.run(u, from, db, "RL.EXPLAIN", name, of)
	if err != nil {
		return nil, err
	}
	f, is := reply.(map[string]any)
	if !is {
		if failed, is := reply.(RunReply); is {
			p.Error = failed.Error
		}
		return p, nil
	}
	p.Text, p.Comment = textIn(f, "text"), textIn(f, "comment")
	p.Shadow, p.Count = intIn(f, "shadow") == 1, intIn(f, "count") == 1
	p.Applies = string(textIn(f, "applies"))
	p.Clauses, p.Try = clausesIn(f, "clauses"), clausesIn(f, "try")
	if answer, is := f["answer"].([]any); is {
		for _, n := range answer {
			n, _ := n.(int64)
			p.Answer = append(p.Answer, n)
		}
	}
	at := r.rec.latest()
	switch p.Setting = settingIn(f, at); {
	case p.Applies == "ban":
		p.Until = at + intIn(f, "ttl")*1000
	case p.Pattern != nil:
		r.whoSet(u, from, p, &p.Setting, strings.TrimSuffix(strings.ToUpper(p.Applies), "ION"))
	}
	if boost, is := f["boost"].(map[string]any); is {
		is := settingIn(boost, at)
		p.Boost, p.Factor = &is, textIn(boost, "factor")
		r.whoSet(u, from, p, &is, "BOOST")
	}
	return p, nil
}

// whoSet adds the user and address that set s, and the time, if u may see them. kind is the first
// word of the change.
func (r *Reporter) whoSet(u *acl.User, from string, p *PolicyState, s *Setting, kind string) {
	reply, err := r.run(u, from, 0, "RL.CHANGES", "COUNT", strconv.Itoa(changesAsked), "POLICY", p.Policy, "PATTERN", string(*s.Pattern))
	changes, is := reply.([]any)
	if err != nil || !is {
		return
	}
	i := slices.IndexFunc(changes, func(c any) bool {
		f, _ := c.(map[string]any)
		return strings.HasPrefix(string(textIn(f, "after")), kind+" ")
	})
	if i < 0 {
		return
	}
	f, _ := changes[i].(map[string]any)
	s.At, s.By = intIn(f, "time"), "from "+textIn(f, "address")
	if user := textIn(f, "user"); user != "" { // a change by a policy file has no user
		s.By = user + ", " + s.By
	}
}

// settingIn parses the pattern and the expiry of the entry in f, a reply. Pattern is nil if f has
// none. at is the present time in Unix milliseconds.
func settingIn(f map[string]any, at int64) (s Setting) {
	if pattern, is := f["pattern"].(Key); is {
		s.Pattern = &pattern
	}
	if ttl := intIn(f, "ttl"); s.Pattern != nil && ttl >= 0 {
		s.Until = at + ttl*1000
	}
	return s
}

// clausesIn parses the list of clauses in the field of f called name. It is empty if f has no such
// field.
func clausesIn(f map[string]any, name string) []Clause {
	list, _ := f[name].([]any)
	all := make([]Clause, 0, len(list))
	for _, is := range list {
		f, _ := is.(map[string]any)
		all = append(all, Clause{
			Clause: textIn(f, "with-unit"), Key: textIn(f, "key"), Limited: intIn(f, "limited") != 0,
			Limit: intIn(f, "limit"), Used: intIn(f, "used"), RetryMs: intIn(f, "retry-after-ms"), ResetMs: intIn(f, "reset-after-ms"),
			Reservations: intIn(f, "reservations"), Held: intIn(f, "held"), EndsMs: intIn(f, "ends-after-ms"),
		})
	}
	return all
}

// clauseOf returns the arguments of RL.INFO for the clause whose state is at key, with the limit in
// force; nil if there is none.
func (p *PolicyState) clauseOf(key Key) []string {
	for _, c := range slices.Concat(p.Clauses, p.Try) {
		words := strings.Fields(string(c.Clause))
		switch {
		case c.Key != key || len(words) < 3:
			continue
		case words[0] != "CL":
			return []string{words[0], strconv.FormatInt(c.Limit, 10)}
		case len(words) == 4 && !strings.HasSuffix(words[3], "ms"): // the durations in RL.INFO are in seconds
			return append(words[:3:3], strings.TrimSuffix(words[3], "s"))
		}
	}
	return nil
}

func textIn(f map[string]any, name string) Key {
	text, _ := f[name].(Key)
	return text
}

func intIn(f map[string]any, name string) int64 {
	n, _ := f[name].(int64)
	return n
}

// maxPattern is the maximum length of a pattern, in bytes.
const maxPattern = 1024

// actionsOnPolicy returns the possible actions on a key of a policy. A key that ends in a star gets
// no action with a pattern, because as a pattern it would match all keys with that prefix. RL.BLOCK
// accepts no other star either.
func actionsOnPolicy(p *PolicyState) []Action {
	name, key := p.Policy, string(p.Key)
	all := []Action{
		action("explain", "Explain", false, "RL.EXPLAIN", name, key),
		action("reset", "Reset all clauses", true, "RL.RESET", name, key),
	}
	end := func(id, what, command string, s *Setting) {
		words := append(strings.Fields(command), name, string(*s.Pattern))
		all = append(all, action(id, what, true, words...))
	}
	hour := Input{Before: "EX", Name: "for", Value: "1h", Empty: "for good"}
	reason := Input{Before: "REASON", Name: "reason", Empty: "no reason"}
	whole := key != "" && len(key) <= maxPattern && !strings.HasSuffix(key, "*")
	switch p.Applies {
	case "block":
		end("unblock", "Unblock", "RL.UNBLOCK", &p.Setting)
	case "exemption":
		end("unexempt", "End the exemption", "RL.UNEXEMPT", &p.Setting)
	case "override":
		end("unoverride", "Delete the override", "RL.OVERRIDE DEL", &p.Setting)
	case "ban":
		all = append(all, action("unban", "End the ban", true, "RL.UNBLOCK", name, key))
	}
	if p.Boost != nil {
		end("unboost", "End the boost", "RL.UNBOOST", p.Boost)
	}
	if p.Applies != "block" && whole && !strings.Contains(key, "*") {
		all = append(all, asking("block", "Block", []string{"RL.BLOCK", name, key}, hour, reason))
	}
	if !whole {
		return all
	}
	long := hour
	long.Empty = ""
	all = append(all, asking("boost", "Boost", []string{"RL.BOOST", name, key}, Input{Name: "times", Value: "2"}, long))
	if p.Applies != "exemption" {
		all = append(all, asking("exempt", "Exempt", []string{"RL.EXEMPT", name, key}, hour, reason))
	}
	if len(p.Clauses) > 0 {
		var limits []string
		for _, c := range p.Clauses {
			limits = append(limits, string(c.Clause))
		}
		all = append(all, asking("override", "Override", []string{"RL.OVERRIDE", "SET", name, key}, hour,
			Input{Before: "COMMENT", Name: "comment", Empty: "no comment"},
			Input{Before: "LIMITS", Name: "limits", Value: strings.Join(limits, " "), Several: true}))
	}
	return all
}

// asking returns an action that asks for confirmation. Its command is words, followed by the
// proposed values of inputs, which the user may edit.
func asking(id, name string, words []string, inputs ...Input) Action {
	fixed := len(words)
	for _, in := range inputs {
		switch {
		case in.Value == "":
			continue
		case in.Before != "":
			words = append(words, in.Before)
		}
		if in.Several {
			words = append(words, strings.Fields(in.Value)...)
		} else {
			words = append(words, in.Value)
		}
	}
	a := action(id, name, true, words...)
	a.Fixed, a.Inputs = fixed, inputs
	return a
}
