package rulefile

import (
	"bytes"
	"strings"
)

// Pattern is a text in which each star stands for any text, including none.
type Pattern struct {
	first, last []byte
	middle      [][]byte
}

// NewPattern returns the pattern with the given text, or nil if the text has no star.
func NewPattern(text string) *Pattern {
	parts := strings.Split(text, "*")
	last := len(parts) - 1
	if last == 0 {
		return nil
	}
	p := &Pattern{first: []byte(parts[0]), last: []byte(parts[last])}
	for _, part := range parts[1:last] {
		if part != "" {
			p.middle = append(p.middle, []byte(part))
		}
	}
	return p
}

// Fits reports whether the pattern fits the whole text. It allocates nothing, and its time is proportional to the
// product of the lengths at most.
func (p *Pattern) Fits(text []byte) bool {
	text, ok := bytes.CutPrefix(text, p.first)
	if !ok {
		return false
	}
	for _, part := range p.middle {
		at := bytes.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return bytes.HasSuffix(text, p.last)
}
