package loadgen

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseTemplate parses a command line, which may begin with a weight and a colon: `3:GET
// user:{key}` is sent three times as often as a template of weight 1. The error says what is wrong
// with the line or with shape.
func ParseTemplate(text string, shape Shape) (*Template, error) {
	if shape.KeyWidth == 0 {
		shape.KeyWidth = DefaultKeyWidth
	}
	if err := shape.check(); err != nil {
		return nil, err
	}
	t := &Template{text: strings.TrimSpace(text), weight: 1, shape: shape}
	if digits, rest, ok := strings.Cut(t.text, ":"); ok && isDigits(digits) {
		weight, err := strconv.Atoi(digits)
		if err != nil || weight < 1 || weight > 1e6 {
			return nil, fmt.Errorf("the weight in %q must be between 1 and 1000000", text)
		}
		t.weight, t.text = weight, strings.TrimSpace(rest)
	}
	var err error
	if t.words, err = splitWords(t.text); err != nil {
		return nil, fmt.Errorf("reading the command %q: %w", t.text, err)
	}
	if len(t.words) == 0 {
		return nil, errors.New("a command line is empty")
	}
	t.quantities = slices.ContainsFunc(t.words, func(w string) bool { return strings.Contains(w, "{q}") })
	last := shape.MinQuantity
	if t.quantities {
		last = shape.MaxQuantity
	}
	for q := shape.MinQuantity; q <= last; q++ {
		t.forms = append(t.forms, t.encode(q))
	}
	t.limit, t.charges, err = t.parseLimit()
	if err != nil {
		return nil, fmt.Errorf("the limit of %q: %w", t.text, err)
	}
	return t, nil
}
