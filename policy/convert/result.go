// Package convert converts the files of other rate limiters to a document of policies. [FromEnvoy]
// reads the files of envoyproxy/ratelimit, and [FromLimitador] the files of Limitador.
//
// Both return a [Result]: the document, a [Call] for each converted limit, which tells how to call
// RL.USE for it, and a [Note] for each difference from the original. The package only processes
// text and needs no server.
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
	// Name is the name of the file in faults and notes.
	Name string
	Text []byte
}

// Result is the result of a conversion.
type Result struct {
	// From is the name of the program whose files were converted.
	From string
	// Files are the names of the files.
	Files []string
	// Document holds the policies.
	Document *document.Document
	// Calls has a call for each converted limit, in the order of the files, and then calls that name
	// several of their policies.
	Calls []Call
	// Notes has at most [MaxNotes] notes, in the order of the files.
	Notes []Note
	// advice is a text about the conditions of the calls, or "".
	advice string
	// Left is the number of notes that were left out because of [MaxNotes].
	Left int
}

// Call describes how a caller uses a policy.
type Call struct {
	// Was describes the converted limit in the terms of the other program.
	Was string
	// When has the conditions for calling the policy. The caller has to check that all of them
	// hold.
	When []string
	// Policy is the name of the policy.
	Policy string
	// Key has the parts of the key that the caller builds. <x> stands for the value of x.
	Key []string
	// And has further calls, whose policies are named in the same command. It charges all of them
	// or none.
	And []Call
}

// words returns the policy and the key as words of RL.USE.
func (c *Call) words() string { return c.Policy + " " + strings.Join(c.Key, "/") }

// MaxNotes is the maximum number of notes in a [Result].
const MaxNotes = 100

// Note describes one difference from the original, or a part that does not convert.
type Note struct {
	File string
	Line int
	// What names the field or the part.
	What string
	// Why says how What was converted, and why.
	Why string
}

// String returns "file:line: what: why".
func (n Note) String() string { return fmt.Sprintf("%s:%d: %s: %s", n.File, n.Line, n.What, n.Why) }

// note adds a note for the given file and line, or increments Left if there are MaxNotes already.
// what is the field What of the note, and why is the format of Why for args.
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
		words := "RL.USE " + c.words()
		for _, other := range c.And {
			words += " AND " + other.words()
		}
		line("    %s", words)
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

// finish sorts the notes and returns r. If there are faults, or the document is too long, it
// returns nil and the faults.
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

// printable returns c, or '?' if c is not printable, so that a comment stays on its line.
func printable(c rune) rune {
	if unicode.IsPrint(c) {
		return c
	}
	return '?'
}

// shown returns value in a form for comments: shortened if it is long, and quoted unless it is one
// plain word.
func shown(value string) string {
	if len(value) > 64 {
		return strict.Clipped(value)
	}
	return literal(value)
}

// literal returns value as a word of a command: quoted, unless it is one plain word.
func literal(value string) string {
	special := func(c rune) bool {
		return !unicode.IsPrint(c) || unicode.IsSpace(c) || strings.ContainsRune(`"'<>\`, c)
	}
	if value == "" || strings.ContainsFunc(value, special) {
		return strconv.Quote(value)
	}
	return value
}

// remark returns text in a form that the comment of a policy may have.
func remark(text string) string {
	const most = 1000 // maximum length in bytes, less than policy.MaxComment
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

// names generates the names of policies.
type names struct {
	used map[string]bool
	// clashing is the field clash of an earlier conversion of the same files, or nil. unique
	// appends a checksum to these names.
	clashing map[string]bool
	// clash is the set of names that unique would have returned more than once.
	clash map[string]bool
}

// withNames calls convert and returns its results. If names clash, it calls convert again, with a
// checksum after each of these names. A number in place of the checksum would depend on the order
// of the entries in the file, and after a change of the order, counters would belong to other
// policies.
func withNames(convert func(n *names) (*Result, strict.Faults)) (*Result, strict.Faults) {
	var first names
	r, faults := convert(&first)
	if len(first.clash) == 0 {
		return r, faults
	}
	return convert(&names{clashing: first.clash})
}

// unique returns a name that is made of parts and is not used yet. raw distinguishes entries with
// the same parts. A number is appended to the name only if even raw is the same.
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

// allowed returns text with '_' in place of each character that the name of a policy must not have.
// It shortens a long text and appends a checksum. For "" it returns "_".
func allowed(text string) string {
	const most = 64 // maximum length in bytes: policy.MaxName
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
