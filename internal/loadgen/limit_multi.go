package loadgen

import (
	"slices"
	"strconv"
	"strings"
)

// clauses are the words that begin a clause of RL.MULTI, with what reads it.
var clauses = map[string]func(*callReader) (*Limit, error){
	"CL": throttleLimit, "SW": windowLimit, "TB": bucketLimit,
}

// multiLimit reads `numkeys key [key ...] clause [clause ...] [MS] [PEEK]`. WITHDETAILS
// answers in a form of its own, which is not looked at.
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
		l.spell = 0 // another clause may have been the one that refused
		charges = append(charges, charge{l, key})
		whole.others = append(whole.others, l.Most)
	}
	if len(rest) > 0 {
		return nil, nil, errNotALimit
	}
	whole.Most = whole.others[0]
	return whole, charges, nil
}

// clause reads the first clause, and returns how many words it is long.
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
