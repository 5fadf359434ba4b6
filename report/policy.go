package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/acl"
)

// PolicyState is what applies to a key of a policy, and why, as RL.EXPLAIN says it.
type PolicyState struct {
	Policy string `json:"policy"`
	Key    Key    `json:"key"` // as RL.USE is called with it
	Text   Key    `json:"text"`
	// Applies is exemption, block, override or default. Of a default there is nothing more in it.
	Applies string `json:"applies"`
	Setting
	Comment Key `json:"comment"` // the reason of a block or an exemption, or the comment of an override
	// Boost is nil if the limits are not multiplied, and else by Factor.
	Boost  *Setting `json:"boost"`
	Factor Key      `json:"factor,omitempty"`
	Shadow bool     `json:"shadow"` // every call is allowed
	// Answer are the five integers that RL.USE with PEEK would answer; times are in seconds.
	Answer  []int64  `json:"answer"`
	Clauses []Clause `json:"clauses"`
	Try     []Clause `json:"try,omitempty"` // of the candidate, if it is tried for the key
	// Error is why RL.EXPLAIN says nothing of that: "NOPERM ...".
	Error string `json:"error,omitempty"`
}

// Setting is something that has been set for a pattern of keys.
type Setting struct {
	Pattern *Key  `json:"pattern"`
	Until   int64 `json:"until"`        // 0 for good
	By      Key   `json:"by,omitempty"` // user and address, if that is still known and may be seen
	At      int64 `json:"at,omitempty"` // when it was set, likewise
}

// Clause is one limit, with the part of it that is in use.
type Clause struct {
	Clause  Key   `json:"clause"` // with the unit of its time: "TB 200 100 1s"
	Key     Key   `json:"key"`    // of its state
	Limited bool  `json:"limited"`
	Limit   int64 `json:"limit"`
	Used    int64 `json:"used"`
	RetryMs int64 `json:"retry_ms"` // -1 for at once, or never if it is limited
	ResetMs int64 `json:"reset_ms"`
}

// changesAsked is how many changes of a pattern are looked through for the one that has set what
// applies. There may be one of another kind behind it.
const changesAsked = 20

// policy explains the key of a policy to u, nil if key has no state of a policy.
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
	p.Text, p.Comment, p.Shadow = textIn(f, "text"), textIn(f, "comment"), intIn(f, "shadow") == 1
	p.Applies = string(textIn(f, "applies"))
	p.Clauses, p.Try = clausesIn(f, "clauses"), clausesIn(f, "try")
	if answer, is := f["answer"].([]any); is {
		for _, n := range answer {
			n, _ := n.(int64)
			p.Answer = append(p.Answer, n)
		}
	}
	at := r.rec.latest()
	if p.Setting = settingIn(f, at); p.Pattern != nil {
		r.whoSet(u, from, p, &p.Setting, strings.TrimSuffix(strings.ToUpper(p.Applies), "ION"))
	}
	if boost, is := f["boost"].(map[string]any); is {
		is := settingIn(boost, at)
		p.Boost, p.Factor = &is, textIn(boost, "factor")
		r.whoSet(u, from, p, &is, "BOOST")
	}
	return p, nil
}

// whoSet adds the user and address that set s, and the time, if u may see that. kind is the first
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
	if user := textIn(f, "user"); user != "" { // a policy file has none
		s.By = user + ", " + s.By
	}
}

// settingIn parses the pattern and the end of an entry. at is now.
func settingIn(f map[string]any, at int64) (s Setting) {
	if pattern, is := f["pattern"].(Key); is {
		s.Pattern = &pattern
	}
	if ttl := intIn(f, "ttl"); s.Pattern != nil && ttl >= 0 {
		s.Until = at + ttl*1000
	}
	return s
}

// clausesIn parses clauses and the units in use.
func clausesIn(f map[string]any, name string) []Clause {
	list, _ := f[name].([]any)
	all := make([]Clause, 0, len(list))
	for _, is := range list {
		f, _ := is.(map[string]any)
		all = append(all, Clause{
			Clause: textIn(f, "with-unit"), Key: textIn(f, "key"), Limited: intIn(f, "limited") != 0,
			Limit: intIn(f, "limit"), Used: intIn(f, "used"), RetryMs: intIn(f, "retry-after-ms"), ResetMs: intIn(f, "reset-after-ms"),
		})
	}
	return all
}

// clauseOf returns the arguments of RL.INFO for the clause whose state is at key, with the limit
// in force; nil if there is none.
func (p *PolicyState) clauseOf(key Key) []string {
	for _, c := range slices.Concat(p.Clauses, p.Try) {
		words := strings.Fields(string(c.Clause))
		switch {
		case c.Key != key || len(words) < 3:
			continue
		case words[0] != "CL":
			return []string{words[0], strconv.FormatInt(c.Limit, 10)}
		case len(words) == 4 && !strings.HasSuffix(words[3], "ms"): // RL.INFO has seconds only
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

// maxPattern is how long a pattern may be, in bytes.
const maxPattern = 1024

// actionsOnPolicy are what may be done about a key of a policy. A key that ends in a star has no
// pattern: as one it would stand for all keys that begin so. RL.BLOCK takes no other star either.
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

// asking is an action with words that are asked for. All of these are asked twice.
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
