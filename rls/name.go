package rls

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cellserver/cellserver/policy"
)

// Prefix is the beginning of the names of all policies of rules.
const Prefix = policy.RulesPrefix

// NameOf returns the name of the policy of the rule with the given path in a domain: [Prefix], and the domain and
// the texts of the steps, joined by '.'. Characters that the name of a policy must not have, and each '.' of the
// domain or of a text, become '_'. If there was one, or if the name is too long, it is cut to 55 bytes, and '-'
// and the FNV-1a hash of the name before that are appended. So the name depends on nothing but the path.
func NameOf(domain string, path ...string) string {
	const most = policy.MaxName - 1 - 8 // the maximum length of a name, less '-' and the hash in 8 hexadecimal digits
	raw := Prefix + strings.Join(append([]string{domain}, path...), ".")
	name := append([]byte(Prefix), allowed(domain)...)
	changed := allowed(domain) != domain
	for _, text := range path {
		is := allowed(text)
		name = append(append(name, '.'), is...)
		changed = changed || is != text
	}
	if !changed && len(name) <= policy.MaxName {
		return string(name)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(raw)) // Write of a hash never fails
	return fmt.Sprintf("%s-%08x", name[:min(most, len(name))], h.Sum32())
}

// allowed returns text with '_' in place of each character that a part of a name must not have.
func allowed(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
			return c
		}
		return '_'
	}, text)
}

// path returns the domain and the texts of the steps of r, joined by '.'.
func (r *Rule) path() string { return strings.Join(append([]string{r.Domain}, r.Path...), ".") }

// comment returns the comment of the policy: the name of the limit, its path and its unit.
func (r *Rule) comment() string {
	var text string
	if r.Limit.Name != "" {
		text = "name " + shown(r.Limit.Name) + ", "
	}
	text += "path " + shown(r.path())
	if !r.Limit.Unlimited {
		text += ", unit " + r.Limit.Unit.String()
	}
	if len(text) > policy.MaxComment {
		const more = "..."
		end := policy.MaxComment - len(more)
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + more
	}
	return text
}

// shown returns text, in quotes if it has characters that are not printable.
func shown(text string) string {
	for _, c := range text {
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			return strconv.Quote(text)
		}
	}
	return text
}
