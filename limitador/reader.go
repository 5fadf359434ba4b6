package limitador

import (
	"time"

	"github.com/cellserver/cellserver/limitador/cel"
	"github.com/cellserver/cellserver/limitador/limitfile"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/rls/rulefile"
	"github.com/cellserver/cellserver/slidingwindow"
)

// reader makes the limits of a limits file.
type reader struct {
	r       *strict.Reader
	remarks strict.Faults
	// limits has the limits of policies by the numbers that they are made of. Many policies share them.
	limits map[[2]int64]*policy.Limits
}

// read returns the limits of f in their order. After a fault they must not be used.
func (e *reader) read(f rulefile.File) ([]*Limit, strict.Faults) {
	root, r, second := strict.ReadLoosely(f.Name, f.Text, rulefile.MaxText)
	if faults := r.Faults(); faults != nil {
		return nil, faults
	}
	if second > 0 {
		r.Fault(second, "a limits file has one document")
	}
	e.r, e.limits = r, map[[2]int64]*policy.Limits{}
	unknown := func(key strict.Key) { r.Fault(key.Line, "unknown field %s", strict.Clipped(key.Text)) }
	read := limitfile.Read(f.Name, root, unknown)
	if faults := r.Faults(); faults != nil {
		return nil, faults.Sorted()
	}
	limits := make([]*Limit, len(read))
	for i, l := range read {
		limits[i] = e.limit(l)
	}
	return limits, r.Faults().Sorted()
}

// limit returns the limit for l.
func (e *reader) limit(l *limitfile.Limit) *Limit {
	is := &Limit{Namespace: l.Namespace, Name: l.Name, ID: l.ID, Max: l.Max, Seconds: l.Seconds, File: l.File, Line: l.Line}
	if l.Namespace == "" {
		e.r.Fault(l.Line, "namespace is empty")
	}
	if !l.HasMax {
		e.remark(l.File, l.Line, "max_value is missing: the limit is 0")
	}
	of := cel.Limit{Name: l.Name, ID: l.ID}
	is.Conditions = e.expressions(l.Conditions, "conditions", func(text string) (*cel.Expr, error) { return cel.Condition(text, of) })
	is.Variables = e.expressions(l.Variables, "variables", cel.Variable)
	is.sorted = sorted(is.Variables)
	if l.Seconds < 1 || l.Seconds > maxSeconds {
		e.r.Fault(l.Line, "seconds must be from 1 to %d, not %d", maxSeconds, l.Seconds)
	} else {
		is.Limits = e.limitsOf(l.Max, l.Seconds)
	}
	return is
}

// remark adds a remark, unless there are too many.
func (e *reader) remark(file string, line int, text string) {
	if len(e.remarks) < strict.MaxFaults {
		e.remarks = append(e.remarks, strict.Fault{File: file, Line: line, Text: text})
	}
}

// expressions parses the expressions of a field called what.
func (e *reader) expressions(of []limitfile.Expression, what string, parse func(string) (*cel.Expr, error)) (list []*cel.Expr) {
	for i, is := range of {
		if i == MaxExpressions {
			e.r.Fault(is.Line, "a limit has at most %d %s", MaxExpressions, what)
			break
		}
		parsed, err := parse(is.Text)
		if err != nil {
			e.r.Fault(is.Line, "%s: %s", strict.Clipped(is.Text), err)
			continue
		}
		list = append(list, parsed)
	}
	return list
}

// maxSeconds is the length of the longest window in seconds.
const maxSeconds = int64(slidingwindow.MaxWindow / time.Second)

// limitsOf returns the limits of a policy, whose numbers are within their bounds.
func (e *reader) limitsOf(most, seconds int64) *policy.Limits {
	l := e.limits[[2]int64{most, seconds}]
	if l == nil {
		l = policy.FixedWindowFromFirst(most, seconds)
		e.limits[[2]int64{most, seconds}] = l
	}
	return l
}
