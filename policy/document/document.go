// Package document reads and writes the YAML of policies: the text of the option
// policy-file, of RL.POLICY DUMP, DIFF and APPLY, and of cellserver policy.
//
// [Parse] reads a [Document] strictly and collects [Faults] with their lines.
// [Document.Append] writes one that Parse reads back equal. [Diff] compares two of them, as
// a list of [Change]. The package keeps no policies and decides nothing: what a policy means
// is in package policy.
package document

import "time"

// MaxText is the largest text that [Parse] reads, in bytes.
const MaxText = 1 << 20

// MaxPolicies is the largest number of policies of a document.
const MaxPolicies = 10_000

// Document is the policies of a file. [Parse] returns them in the order of the file, and
// [Document.Append] writes them sorted.
type Document struct {
	// Policies have a different name each.
	Policies []Policy
}

// Policy is a name with limits, and with overrides for some keys.
type Policy struct {
	// Name is what RL.USE is called with.
	Name string
	// Comment is for people, and may be empty.
	Comment string
	// Millis tells that the times of all clauses are milliseconds, those of the overrides
	// included. Otherwise they are seconds.
	Millis bool
	// Shadow tells that the server counts calls that it would deny, and allows them.
	Shadow bool
	// Limits are the clauses, one a string, in the words of RL.MULTI: "TB 200 100 1".
	// There is at least one.
	Limits []string
	// Overrides have a different pattern each.
	Overrides []Override
	// Line is where the policy begins in its file, from 1. It is 0 if there is no file.
	Line int
}

// Override is limits of their own for the keys of a pattern.
type Override struct {
	// Pattern is an exact key, or a prefix that ends in *. It may be any bytes.
	Pattern string
	// Comment is for people, and may be empty.
	Comment string
	// Limits are as those of [Policy].
	Limits []string
	// Expires is when the override ends. The zero time means never.
	Expires time.Time
	// Line is as that of [Policy].
	Line int
}

// Bounds are what the clauses of a document may ask for at most.
type Bounds struct{}

// Parse reads the text of a file. name is that of the file, for the faults. A document with
// faults must not be used: it is nil.
func Parse(name string, b []byte, o Bounds) (*Document, Faults) {
	return nil, Faults{{File: name, Line: 1, Text: "not implemented"}}
}

// Append appends the document as YAML to dst. The order and the quotes depend on nothing but
// the content. [Parse] reads the same document from it, but for the lines.
func (d *Document) Append(dst []byte) []byte { return dst }
