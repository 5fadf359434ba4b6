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

// NameOf returns the name of the policy of the rule with the given path in a domain: [PolicyName] of [Prefix], the
// domain and the texts of the steps. So the name depends on nothing but the path.
func NameOf(domain string, path ...string) string {
	return PolicyName(Prefix, append([]string{domain}, path...)...)
}

// PolicyName returns the name of the policy of a limit of a file: prefix, and parts joined by '.'. Characters that
// the name of a policy must not have, and each '.' of a part, become '_'. If there was one, or if the name is too
// long, it is cut to 55 bytes, and '-' and the FNV-1a hash of the name before that are appended.
func PolicyName(prefix string, parts ...string) string {
	const most = policy.MaxName - 1 - 8 // '-' and the hash in hexadecimal digits
	raw := strings.Join(parts, ".")
	changed := false
	names := make([]string, len(parts))
	for i, part := range parts {
		names[i] = allowed(part)
		changed = changed || names[i] != part
	}
	name := prefix + strings.Join(names, ".")
	if !changed && len(name) <= policy.MaxName {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(prefix + raw)) // Write never fails
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
		text = "name " + Shown(r.Limit.Name) + ", "
	}
	text += "path " + Shown(r.path())
	if !r.Limit.Unlimited {
		text += ", unit " + r.Limit.Unit.String()
	}
	return Comment(text)
}

// Comment returns text as the comment of a policy, cut to [policy.MaxComment] bytes.
func Comment(text string) string {
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

// Shown returns text, in quotes if it has characters that are not printable.
func Shown(text string) string {
	for _, c := range text {
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			return strconv.Quote(text)
		}
	}
	return text
}
