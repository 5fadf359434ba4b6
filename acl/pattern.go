package acl

import (
	"bytes"
	"strings"

	"github.com/cellserver/cellserver/glob"
)

// pattern is a compiled glob pattern of keys or channels. Most patterns are a prefix with a star at
// the end, or have no special characters; these are compared without package glob.
type pattern struct {
	text   string
	fixed  []byte // the bytes to compare: the prefix, the exact name or, for other patterns, the text
	kind   patternKind
	access Access // the access to keys that the pattern permits; 0 for patterns of channels
}

type patternKind uint8

const (
	globPattern patternKind = iota
	prefixPattern
	exactPattern
)

// compile returns the pattern with that text, for keys with the permitted access.
func compile(text string, access Access) pattern {
	p := pattern{text: text, access: access}
	switch special := strings.IndexAny(text, `*?[\`); {
	case special < 0:
		p.kind, p.fixed = exactPattern, []byte(text)
	case special == len(text)-1 && text[special] == '*':
		p.kind, p.fixed = prefixPattern, []byte(text[:special])
	default:
		p.fixed = []byte(text)
	}
	return p
}

// matches reports whether p matches name, the name of a key or channel.
func (p *pattern) matches(name []byte) bool {
	if p.kind == prefixPattern {
		return bytes.HasPrefix(name, p.fixed)
	}
	switch p.kind {
	case exactPattern:
		return bytes.Equal(name, p.fixed)
	default:
		return glob.Match(p.fixed, name)
	}
}

// keyText returns the ACL rule for p, a pattern of keys.
func (p *pattern) keyText() string {
	switch p.access {
	case Read:
		return "%R~" + p.text
	case Write:
		return "%W~" + p.text
	default:
		return "~" + p.text
	}
}
