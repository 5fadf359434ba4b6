package convert

import (
	"fmt"
	"strings"
)

// step is a descriptor on the path to a group.
type step struct {
	*descriptor
	// beside has the descriptors with the same key that take precedence over the step for some
	// values. within has descriptors of the same policy with exact values, which in turn take
	// precedence over the patterns in beside.
	beside, within []*descriptor
	// condition is the text of the condition under which a call takes this step: the result of
	// when.
	condition string
}

func newStep(d *descriptor, beside, within []*descriptor) step {
	const most = 1000 // maximum number of descriptors that the condition considers
	s := step{descriptor: d, beside: beside[:min(len(beside), most)], within: within[:min(len(within), most)]}
	s.condition = s.when()
	return s
}

// isInKey reports whether each value of the step is counted separately.
func (s step) isInKey() bool { return !s.exact() && !s.share }

// when returns the condition under which the step applies, or "" if it always applies. Exact values
// take precedence over patterns, and patterns over the descriptor for any value.
func (s step) when() string {
	key := shown(s.key)
	if s.exact() {
		return fmt.Sprintf("%s is %s", key, shown(s.value))
	}
	if s.value != "" {
		text := fmt.Sprintf("%s matches %s", key, shown(s.value))
		if others := some(s.beside, func(d *descriptor) bool { return d.exact() && matches(s.value, d.value) }); others != "" {
			text += " and is not " + others
		}
		return text
	}
	others := some(s.beside, func(d *descriptor) bool { return d.value != "" })
	if others == "" {
		return ""
	}
	text := fmt.Sprintf("%s is not %s", key, others)
	if back := some(s.within, s.isTaken); back != "" {
		text = fmt.Sprintf("%s is %s, or %s", key, back, text)
	}
	return text
}

// isTaken reports whether a pattern beside the step takes precedence for the value of d.
func (s step) isTaken(d *descriptor) bool {
	for _, other := range s.beside[:min(len(s.beside), 100)] {
		if other.value != "" && !other.exact() && matches(other.value, d.value) {
			return true
		}
	}
	return false
}

// some returns the first three values of the descriptors for which wanted returns true, and the
// number of the others, as text; "" if there is no such descriptor.
func some(list []*descriptor, wanted func(*descriptor) bool) string {
	var values []string
	count := 0
	for _, d := range list {
		if wanted(d) {
			if count++; count <= 3 {
				values = append(values, shown(d.value))
			}
		}
	}
	if count > 3 {
		values = append(values, fmt.Sprintf("%d more", count-3))
	}
	return strings.Join(values, ", ")
}

// matches reports whether value matches a pattern in which each star stands for any text.
func matches(pattern, value string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	value, ok := strings.CutPrefix(value, parts[0])
	for _, part := range parts[1:last] {
		at := strings.Index(value, part)
		if at < 0 {
			return false
		}
		value = value[at+len(part):]
	}
	return ok && strings.HasSuffix(value, parts[last])
}
