package use

import "strconv"

// Part is one policy of a call of RL.USE that names several.
type Part struct {
	Policy, Key []byte
	Quantity    int64
}

// AppendAll appends a call of RL.USE to dst that charges all of parts or none. There is at least one, and no two have the
// same policy and key. mode is PEEK or "". [Parts.Read] reads the reply. AppendAll allocates nothing if dst is large enough.
func AppendAll(dst []byte, parts []Part, mode string) []byte {
	const each, fixed = 4, 2 // AND, policy, key and quantity; RL.USE in the place of the first AND, MS and WITHDETAILS
	words := each*len(parts) + fixed
	if mode != "" {
		words++
	}
	dst = append(strconv.AppendInt(append(dst, '*'), int64(words), 10), "\r\n"...)
	word := "RL.USE"
	for i := range parts {
		p := &parts[i]
		dst = appendNumber(appendWord(appendWord(appendWord(dst, word), p.Policy), p.Key), p.Quantity)
		word = "AND"
	}
	if mode != "" {
		dst = appendWord(dst, mode)
	}
	return appendWord(appendWord(dst, "MS"), "WITHDETAILS")
}

// Outcome is the decision on one policy of a call that names several.
type Outcome struct {
	// Decision is that of the limit that denies, or else of that with the least remaining units. With an exemption its
	// Refused may be 1 although the policy does not deny the call: see [Parts.Denied].
	Decision
	// Untried says that the limits were not tried, because another policy has a block. Decision has no meaning then.
	Untried bool
}

// Parts are the outcomes of a call that names several policies. Read reuses its memory.
type Parts struct {
	// Denied says that the call is denied.
	Denied bool
	// Outcomes has an element for each policy.
	Outcomes []Outcome

	one Answer // the answer to a call that names one policy
}

// Read reads the first reply in replies, that to a call of n policies, and returns what follows it. The errors are those of
// [Answer.Read].
func (p *Parts) Read(replies []byte, n int) (rest []byte, err error) {
	p.Outcomes = p.Outcomes[:0]
	if n == 1 || len(replies) > 0 && replies[0] == '-' {
		if rest, err = p.one.Read(replies); err == nil {
			p.Denied = p.one.Binding.Refused != 0
			p.Outcomes = append(p.Outcomes, p.one.outcome())
		}
		return rest, err
	}
	r := reader{rest: replies}
	if r.integer('*') != 2 {
		return nil, ErrReply
	}
	p.Denied = r.decision().Refused != 0
	if r.integer('*') != int64(n) {
		return nil, ErrReply
	}
	for range n {
		clauses := r.integer('*')
		is := Outcome{Untried: clauses < 0}
		for i := range clauses {
			is.add(r.decision(), i == 0)
		}
		r.bad = r.bad || clauses == 0
		p.Outcomes = append(p.Outcomes, is)
	}
	if r.bad {
		return nil, ErrReply
	}
	return r.rest, nil
}

// outcome returns the outcome that the answer to a call of one policy has.
func (a *Answer) outcome() (is Outcome) {
	for i, d := range a.Clauses {
		is.add(d, i == 0)
	}
	return is
}

// add adds the decision of a limit. first says that there was none before.
func (o *Outcome) add(d Decision, first bool) {
	denies, denied := d.Refused != 0, o.Refused != 0
	if first || denies && !denied || denies == denied && d.Remaining < o.Remaining {
		o.Decision = d
	}
}
