package limitador

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/cellserver/cellserver/limitador/cel"
	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/rls/rulefile"
	"github.com/cellserver/cellserver/slidingwindow"
)

// reader reads a limits file.
type reader struct {
	file string
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
	e.limits = map[[2]int64]*policy.Limits{}
	var limits []*Limit
	for item := range root.Items("a limits file") {
		if item.IsMapping() {
			limits = append(limits, e.limit(item))
		} else {
			item.Fault("a limit must be a mapping")
		}
	}
	return limits, r.Faults().Sorted()
}

// required are the fields that a limit must have.
var required = []string{"namespace", "max_value", "seconds", "conditions", "variables"}

// limit reads v as a limit.
func (e *reader) limit(v strict.Value) *Limit {
	is := &Limit{File: e.file, Line: v.Line()}
	var conditions strict.Value
	has := map[string]bool{}
	valid := true
	for key, value := range v.Fields("a limit") {
		has[key.Text] = true
		ok := true
		switch key.Text {
		case "namespace":
			if is.Namespace, ok = value.String(key.Text); ok && is.Namespace == "" {
				value.Fault("namespace is empty")
			}
		case "max_value":
			is.Max, ok = value.Number(key.Text, 0, math.MaxInt64)
		case "seconds":
			is.Seconds, ok = value.Number(key.Text, 1, int64(slidingwindow.MaxWindow/time.Second))
		case "name":
			is.Name = optional(value, key.Text)
		case "id":
			is.ID = optional(value, key.Text)
		case "conditions":
			conditions = value
		case "variables":
			is.Variables = expressions(value, key.Text, cel.Variable)
		default:
			value.Fault("unknown field %s", strict.Clipped(key.Text))
		}
		valid = valid && ok
	}
	for _, field := range required {
		if !has[field] {
			v.Fault("%s is missing", field)
			valid = false
		}
	}
	if conditions.IsSet() {
		of := cel.Limit{Name: is.Name, ID: is.ID}
		is.Conditions = expressions(conditions, "conditions", func(source string) (*cel.Expr, error) { return cel.Condition(source, of) })
	}
	is.sorted = sorted(is.Variables)
	if valid {
		is.Limits = e.limitsOf(v, is.Max, is.Seconds)
	}
	return is
}

// optional returns the text of a field that may be null. what is its name.
func optional(v strict.Value, what string) *string {
	if v.IsNull() {
		return nil
	}
	text, _ := v.String(what)
	return &text
}

// expressions reads a list of expressions, which may be null, and leaves out repetitions. what is the name of the
// field.
func expressions(v strict.Value, what string, parse func(string) (*cel.Expr, error)) (list []*cel.Expr) {
	if v.IsNull() {
		return nil
	}
	for item := range v.Items(what) {
		source, ok := item.String("an element of " + what)
		if !ok || slices.ContainsFunc(list, func(e *cel.Expr) bool { return e.String() == source }) {
			continue
		}
		if len(list) == MaxExpressions {
			item.Fault("a limit has at most %d %s", MaxExpressions, what)
			break
		}
		e, err := parse(source)
		if err != nil {
			item.Fault("%s: %s", strict.Clipped(source), err)
			continue
		}
		list = append(list, e)
	}
	return list
}

// limitsOf returns the limits of a policy. v is the limit of the file that they are for.
func (e *reader) limitsOf(v strict.Value, most, seconds int64) *policy.Limits {
	l := e.limits[[2]int64{most, seconds}]
	if l == nil {
		words := [][]byte{[]byte("SW"), strconv.AppendInt(nil, most, 10), strconv.AppendInt(nil, seconds, 10), []byte("FIXED"), []byte("ANCHOR"), []byte("FIRST")}
		is, err := policy.ParseLimits(words, false, policy.Bounds{})
		if err != "" {
			v.Fault("%s", err)
			return nil
		}
		l = is
		e.limits[[2]int64{most, seconds}] = l
	}
	return l
}
