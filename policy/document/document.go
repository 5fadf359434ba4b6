// Package document reads and writes the YAML of policies. It is the text of the option policy-file,
// of RL.POLICY DUMP, DIFF and APPLY, and of cellserver policy.
//
// [Parse] reads a [Document] strictly and collects [Faults] with their lines.
// [Document.Append] writes one that Parse reads back equal. [Diff] compares two of them, as
// a list of [Change]. The package keeps no policies and decides nothing: what a policy means
// is in package policy.
package document

import (
	"time"

	"github.com/cellserver/cellserver/policy/strict"
)

// MaxText is the largest text of a file, in bytes.
const MaxText = 1 << 20

// MaxPolicies is the largest number of policies of a document.
const MaxPolicies = 10_000

// Fault is one thing that is wrong with a text, and its line.
type Fault = strict.Fault

// Faults are the faults of a text, sorted by their lines, at most [strict.MaxFaults].
type Faults = strict.Faults

// Document is the policies of a file. [Parse] returns them in the order of the file, and
// [Document.Append] writes them sorted.
type Document struct {
	// Policies have a different name each.
	Policies []Policy
}

// Policy is a name with limits, and with overrides for some keys.
type Policy struct {
	// Name is the name that calls of RL.USE give.
	Name string
	// Comment is for people, and may be empty.
	Comment string
	// Millis tells that the times of the clauses are milliseconds. Otherwise they are seconds.
	// In a file that holds for the overrides too that do not say ms.
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
	// Millis and Limits are as those of [Policy].
	Millis bool
	Limits []string
	// Expires is when the override ends, in UTC. The zero time means never.
	Expires time.Time
	// Line is as that of [Policy].
	Line int
}
