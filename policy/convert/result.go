// Package convert makes a document of policies from the files of other rate limiters. [FromEnvoy]
// reads those of envoyproxy/ratelimit, and [FromLimitador] those of Limitador.
//
// Both return a [Result]: the document, a [Call] for each thing that was limited, which says
// how RL.USE is called for it, and a [Note] for each thing that is not as it was. The package
// only reads text. It knows no server.
package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cellserver/cellserver/policy/document"
	"github.com/cellserver/cellserver/policy/strict"
)

// File is a file to convert.
type File struct {
	// Name is for faults and notes.
	Name string
	Text []byte
}

// Result is the result of a conversion.
type Result struct {
	// From is the program that the files are for.
	From string
	// Files are the names of the files.
	Files []string
	// Document has the policies.
	Document *document.Document
	// Calls are in the order of the files.
	Calls []Call
	// Notes are in the order of the files, at most [MaxNotes].
	Notes []Note
	// advice is about the conditions of the calls.
	advice string
	// Left is how many notes there are beyond those.
	Left int
}

// Call says how a caller uses a policy.
type Call struct {
	// Was is the converted limit in the words of the other program.
	Was string
	// When are the conditions under which the policy is called. All of them have to hold, and
	// the caller has to know.
	When []string
	// Policy is the name of the policy.
	Policy string
	// Key are the parts of its key. <x> stands for the value of x.
	Key []string
}

// MaxNotes is how many notes are kept at most.
const MaxNotes = 100

// Note says of one thing that it is not as it was, or does not convert.
type Note struct {
	File string
	Line int
	// What is the field or the part.
	What string
	// Why says how it was converted, and why.
	Why string
}

// String is "file:line: what: why".
func (n Note) String() string { return fmt.Sprintf("%s:%d: %s: %s", n.File, n.Line, n.What, n.Why) }

// note adds a note.
func (r *Result) note(file string, line int, what, why string, args ...any) {
	if len(r.Notes) == MaxNotes {
		r.Left++
		return
	}
	r.Notes = append(r.Notes, Note{File: file, Line: line, What: what, Why: fmt.Sprintf(why, args...)})
}

// Append appends the document as YAML to dst, after comments on the calls and on the differences
// from the source. document.Parse reads it.
func (r *Result) Append(dst []byte) []byte {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(strings.TrimRight("# "+strings.Map(printable, fmt.Sprintf(format, args...)), " ") + "\n")
	}
	line("Policies from %s, for %s.", strings.Join(r.Files, ", "), r.From)
	line("This is how they are called. <x> is the value of x, and a slash joins the parts of a key:")
	line("choose another sign if values have slashes.")
	if r.advice != "" {
		line("%s", r.advice)
	}
	for _, c := range r.Calls {
		line("")
		line("  %s", c.Was)
		for _, when := range c.When {
			line("    if %s", when)
		}
		line("    RL.USE %s %s", c.Policy, strings.Join(c.Key, "/"))
	}
	if len(r.Notes) > 0 {
		line("")
		line("What is not as it was:")
	}
	for _, n := range r.Notes {
		line("  %s", n)
	}
	if r.Left > 0 {
		line("  and %d more", r.Left)
	}
	return r.Document.Append(append(dst, b.String()...))
}

// finish sorts the notes, and refuses a document that is too long.
func (r *Result) finish(faults strict.Faults) (*Result, strict.Faults) {
	if faults != nil {
		return nil, faults
	}
	slices.SortStableFunc(r.Notes, func(a, b Note) int {
		return cmp.Or(slices.Index(r.Files, a.File)-slices.Index(r.Files, b.File), a.Line-b.Line)
	})
	if n := len(r.Append(nil)); n > document.MaxText {
		fault := strict.Fault{File: r.Files[0], Line: 1, Text: fmt.Sprintf("the policies have %d bytes, and a policy file has at most %d: leave out values of which there are many, such as tenants, and set their limits with RL.OVERRIDE SET, which the server keeps for up to 1,000,000 of them", n, document.MaxText)}
		return nil, strict.Faults{fault}
	}
	return r, nil
}

// printable keeps the text of a comment on its line.
func printable(c rune) rune {
	if unicode.IsPrint(c) {
		return c
	}
	return '?'
}

// shown is a value in a comment: short, and with quotes unless it is one plain word.
func shown(value string) string {
	if len(value) > 64 {
		return strict.Clipped(value)
	}
	return literal(value)
}

// literal is a value as a word of a command, with quotes unless it is one plain word.
func literal(value string) string {
	special := func(c rune) bool {
		return !unicode.IsPrint(c) || unicode.IsSpace(c) || strings.ContainsRune(`"'<>\`, c)
	}
	if value == "" || strings.ContainsFunc(value, special) {
		return strconv.Quote(value)
	}
	return value
}

// remark is text as the comment of a policy.
func remark(text string) string {
	const most = 1000 // bytes, within policy.MaxComment
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "?"))
	if len(text) <= most {
		return text
	}
	end := most
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// names makes the names of policies.
type names struct {
	used map[string]bool
	// clashing are the names that several policies would have, as far as that is known before.
	clashing map[string]bool
	// clash are those of which it was found out.
	clash map[string]bool
}

// withNames converts, and once more if names clash, with a checksum after each of these names. A
// number would depend on the order of the entries in the file, and so would move the counters of
// policies to others.
func withNames(convert func(n *names) (*Result, strict.Faults)) (*Result, strict.Faults) {
	var first names
	r, faults := convert(&first)
	if len(first.clash) == 0 {
		return r, faults
	}
	return convert(&names{clashing: first.clash})
}

// unique makes a name of parts. raw distinguishes entries with the same parts; a number after the
// name is used only if even raw is the same.
func (n *names) unique(raw string, parts ...string) string {
	name := allowed(strings.Join(parts, "."))
	if n.clashing[name] {
		name = fmt.Sprintf("%.55s-%08x", name, checksum(raw))
	}
	if n.used == nil {
		n.used, n.clash = map[string]bool{}, map[string]bool{}
	}
	if n.used[name] {
		n.clash[name] = true
	}
	for i, base := 2, name; n.used[name]; i++ {
		name = fmt.Sprintf("%.58s-%d", base, i)
	}
	n.used[name] = true
	return name
}

// allowed replaces the characters that the name of a policy must not have. Long text is cut, with
// a checksum.
func allowed(text string) string {
	const most = 64 // policy.MaxName
	clean := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '.', c == '-':
			return c
		}
		return '_'
	}, text)
	if len(clean) > most {
		return fmt.Sprintf("%s-%08x", clean[:most-9], checksum(text))
	}
	return cmp.Or(clean, "_")
}
