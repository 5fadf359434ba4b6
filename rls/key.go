package rls

import (
	"crypto/sha256"
	"encoding/hex"
)

// MaxKey is the maximum length of the key of a state in bytes.
const MaxKey = 1024

const (
	// All is the key without a part.
	All = "all"
	// same is the part of an entry whose "key_value" is the key of a step without a value. No other part has a '%'
	// that two hexadecimal digits do not follow.
	same = "%_"
)

// appendKey appends the key of the state of the entries that p.path has. own says that it is for a limit of the
// request, for which values of shared steps are different. unit is appended if it is not 0.
//
// The key has the parts of the steps that are neither exact nor shared, joined by '|', or is [All]. The text of an
// exact step may also be the key of an entry, which then has a part. In this case all exact steps have parts,
// so that keys differ by the number of parts.
func (p *Plan) appendKey(dst []byte, own bool, unit Unit) []byte {
	from, parts := len(dst), 0
	named := false
	for i := range p.path {
		v := &p.path[i]
		named = named || v.step.exact && !v.whole
	}
	for i := range p.path {
		v := &p.path[i]
		if v.step.exact && !named || v.step.shared && !own {
			continue
		}
		part, marked := p.part(v)
		if named && v.step.exact && v.whole {
			marked = true
		}
		if dst = separate(dst, parts); marked {
			dst = append(dst, same...)
		} else {
			dst = AppendPart(dst, part)
		}
		parts++
	}
	switch {
	case parts == 0:
		dst = append(dst, All...)
	case own && parts == 1 && string(dst[from:]) == All:
		dst = append(dst[:from], "%61ll"...) // the key of a shared step is All
	}
	return BoundKey(appendUnit(dst, unit), from)
}

// appendRequestKey appends the key of the state of entries that no rule matches, for a limit of the request.
func appendRequestKey(dst []byte, entries []Entry, unit Unit) []byte {
	from := len(dst)
	for i := range entries {
		dst = separate(dst, i)
		dst = AppendPart(dst, entries[i].Key)
		dst = append(dst, '_')
		dst = AppendPart(dst, entries[i].Value)
	}
	if len(entries) == 0 {
		dst = append(dst, All...)
	}
	return BoundKey(appendUnit(dst, unit), from)
}

// separate appends '|' if there are parts before.
func separate(dst []byte, parts int) []byte {
	if parts == 0 {
		return dst
	}
	return append(dst, '|')
}

// appendUnit appends a unit that is not the unit of the policy. It appends nothing if the unit is
// 0.
func appendUnit(dst []byte, unit Unit) []byte {
	if unit == 0 {
		return dst
	}
	return append(append(dst, "%@"...), unit.String()...)
}

// AppendPart appends part with %25, %7C and %23 for '%', '|' and '#'. So parts can be told apart, and no key
// ends as the key of a second clause does.
func AppendPart(dst, part []byte) []byte {
	for _, c := range part {
		switch c {
		case '%':
			dst = append(dst, "%25"...)
		case '|':
			dst = append(dst, "%7C"...)
		case '#':
			dst = append(dst, "%23"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// BoundKey cuts a key to [MaxKey] bytes. The key is the rest of the text from the index from. A key that is too long
// keeps its first 960 bytes, and gets "%~" and 32 hexadecimal digits of its SHA-256.
func BoundKey(dst []byte, from int) []byte {
	const kept, digits = 960, 32
	if len(dst)-from <= MaxKey {
		return dst
	}
	sum := sha256.Sum256(dst[from:])
	dst = append(dst[:from+kept], "%~"...)
	return hex.AppendEncode(dst, sum[:digits/2])
}
