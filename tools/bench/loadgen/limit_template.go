package loadgen

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// parsers parse the arguments after the key of the commands with one limit.
var parsers = map[string]func(*callReader) (*Limit, error){
	"CL.THROTTLE": throttleLimit,
	"RL.THROTTLE": throttleLimit,
	"SW.ALLOW":    windowLimit,
	"TB.ACQUIRE":  bucketLimit,
	"CC.ACQUIRE":  leaseLimit,
}

// parseLimit parses the template's command: the limit that its replies show, and its charges. Both
// are nil if it is not a limiter's command. A call that every server refuses is not an error here.
func (t *Template) parseLimit() (l *Limit, charges []charge, err error) {
	if len(t.words) < 2 {
		return nil, nil, nil
	}
	if parse := parsers[t.Name()]; parse != nil {
		l, err = t.readLimit(parse, t.words[2:])
		charges = []charge{{l, t.words[1]}}
	} else if t.Name() == "RL.MULTI" {
		l, charges, err = t.multiLimit(t.words[1:])
	}
	if errors.Is(err, errNotALimit) || l == nil {
		return nil, nil, nil
	}
	return l, charges, err
}

// readLimit parses one limit and applies the quantity to it. A call that may give units back has no
// bound.
func (t *Template) readLimit(parse func(*callReader) (*Limit, error), words []string) (*Limit, error) {
	r := callReader{words: words, quantity: [2]int64{1, 1}, drawn: [2]int64{t.shape.MinQuantity, t.shape.MaxQuantity}}
	l, err := parse(&r)
	if err != nil {
		return nil, err
	}
	if r.quantity[0] < 0 {
		l.bound, l.unbounded = nil, "some calls give units back"
	}
	l.free = l.free || r.quantity[1] <= 0
	l.asks = max(r.quantity[1], 0)
	if r.varies {
		l.asks = drawn
	}
	return l, nil
}

// clauses maps the word that begins a clause of RL.MULTI to its parser.
var clauses = map[string]func(*callReader) (*Limit, error){
	"CL": throttleLimit, "SW": windowLimit, "TB": bucketLimit,
}

// multiLimit parses `numkeys key [key ...] clause [clause ...] [MS] [PEEK]`. It returns
// errNotALimit for a call with WITHDETAILS, whose reply has another form.
func (t *Template) multiLimit(words []string) (*Limit, []charge, error) {
	n, err := strconv.Atoi(words[0])
	if err != nil || n < 1 || n >= len(words) {
		return nil, nil, errNotALimit
	}
	keys, rest := words[1:1+n], words[1+n:]
	var millis, peek bool
	for ; len(rest) > 0; rest = rest[:len(rest)-1] {
		last := strings.ToUpper(rest[len(rest)-1])
		if last != "MS" && last != "PEEK" {
			break
		}
		millis, peek = millis || last == "MS", peek || last == "PEEK"
	}
	whole := &Limit{Name: "limits of RL.MULTI"}
	var charges []charge
	for _, key := range keys {
		l, used, err := t.clause(rest, millis)
		if err != nil {
			return nil, nil, err
		}
		rest = rest[used:]
		l.free = l.free || peek
		l.spell = 0 // another clause may be the reason of the refusal
		charges = append(charges, charge{l, key})
		whole.others = append(whole.others, l.Most)
	}
	if len(rest) > 0 {
		return nil, nil, errNotALimit
	}
	whole.Most = whole.others[0]
	return whole, charges, nil
}

// clause parses the first clause, which ends before the next word that begins a clause, and returns
// the number of its words.
func (t *Template) clause(words []string, millis bool) (*Limit, int, error) {
	if len(words) == 0 || clauses[strings.ToUpper(words[0])] == nil {
		return nil, 0, errNotALimit
	}
	parse := clauses[strings.ToUpper(words[0])]
	end := 1 + slices.IndexFunc(append(slices.Clone(words[1:]), "CL"), func(w string) bool { return clauses[strings.ToUpper(w)] != nil })
	l, err := t.readLimit(func(r *callReader) (*Limit, error) {
		r.millis = millis
		return parse(r)
	}, words[1:end])
	return l, end, err
}
