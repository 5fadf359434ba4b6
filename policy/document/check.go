package document

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/strict"
)

// parser builds a document from the values of a text.
type parser struct {
	r      *strict.Reader
	bounds policy.Bounds
	d      Document
}

// limits parses the clauses of an entry, one per string. line is the line of the entry, and millis
// says that durations are in milliseconds. After a fault the result is nil.
func (p *parser) limits(v strict.Value, line int, millis bool) *policy.Limits {
	if !v.IsSet() {
		p.r.Fault(line, "limits is missing")
		return nil
	}
	var all [][]byte
	n, sound := 0, v.IsList()
	for item := range v.Items("limits") {
		text, ok := item.String("a limit")
		words := bytes.Fields([]byte(text))
		if ok {
			if err := p.clause(words, millis); err != nil {
				item.Fault("limit %s: %v", strict.Clipped(text), err)
				ok = false
			}
		}
		n, sound = n+1, sound && ok
		all = append(all, words...)
	}
	switch {
	case !sound:
		return nil
	case n == 0:
		v.Fault("limits must have a clause, such as TB 200 100 1")
		return nil
	}
	l, err := policy.ParseLimits(all, millis, p.bounds)
	if err != "" {
		v.Fault("limits: %s", strings.TrimPrefix(string(err), "ERR "))
		return nil
	}
	return l
}

// clause returns an error unless words are exactly one valid clause. millis says that its duration
// is in milliseconds.
func (p *parser) clause(words [][]byte, millis bool) error {
	l, err := policy.ParseElement(words, millis, p.bounds)
	switch {
	case err != "":
		text := strings.TrimPrefix(strings.TrimPrefix(string(err), "ERR "), "clause 1: ")
		if strings.Contains(text, ", must be ") { // no hint is needed after such a text, and there may be a hundred faults
			text, _, _ = strings.Cut(text, "; usage: ")
		}
		return errors.New(text)
	case len(l.Text) > 1:
		return fmt.Errorf("there are %d clauses: write each as a limit of its own", len(l.Text))
	}
	return nil
}

// check adds a fault if the name, the pattern or the comment of e is not valid. The limits of e
// have been checked before.
func (p *parser) check(e policy.Entry, key strict.Key, comment strict.Value) {
	e.Until = limit.MaxInstant
	if e.Limits == nil {
		e.Limits = &policy.Limits{} // the fault of the limits was reported already
	}
	switch err := e.Check(); {
	case errors.Is(err, policy.ErrComment):
		comment.Fault("%v", err)
	case err != nil:
		p.r.Fault(key.Line, "%v", err)
	}
}
