// Package document reads and writes the YAML of policies. The option policy-file, the commands
// RL.POLICY DUMP, DIFF and APPLY, and the program "cellserver policy" use this YAML.
//
// [Parse] reads a [Document] strictly and collects [Faults] with their lines. [Document.Append]
// writes a document in the form that Parse reads. [Diff] compares two documents and returns a list
// of [Change]. The package keeps no policies and decides nothing. Package policy defines the
// meaning of a policy.
package document

import (
	"time"

	"github.com/cellserver/cellserver/policy"
	"github.com/cellserver/cellserver/policy/strict"
)

// MaxText is the maximum size of a file, in bytes.
const MaxText = 1 << 20

// MaxPolicies is the maximum number of policies of a document.
const MaxPolicies = 10_000

// Fault is one error in a text, with its line.
type Fault = strict.Fault

// Faults are the faults of a text, at most [strict.MaxFaults].
type Faults = strict.Faults

// Document holds the policies of a file. [Parse] returns them in the order of the file, and
// [Document.Append] writes them sorted.
type Document struct {
	// Policies has the policies. No two of them have the same name.
	Policies []Policy
}

// Policy is a name with limits, and with overrides for some keys.
type Policy struct {
	// Name is the name in calls of RL.USE.
	Name string
	// Comment is a text for operators. It may be empty.
	Comment string
	// Millis says that the durations in clauses are in milliseconds, not seconds. In a file it
	// also applies to overrides without an ms field.
	Millis bool
	// Flags are the properties of the policy. If its Key has IP, the patterns of Overrides are in the form of
	// [policy.KeyForm.Pattern].
	policy.Flags
	// Limits are the clauses, one per string, in the syntax of RL.MULTI: "TB 200 100 1". There is
	// at least one.
	Limits []string
	// Overrides has the overrides. No two of them have the same pattern.
	Overrides []Override
	// Line is the line in the file at which the policy begins, counted from 1. It is 0 if the
	// policy does not come from a file.
	Line int
}

// Override is a set of limits for the keys that match a pattern.
type Override struct {
	// Pattern is an exact key, or a prefix followed by *. It may contain any bytes.
	Pattern string
	// Comment is a text for operators. It may be empty.
	Comment string
	// Millis and Limits have the same meaning as in [Policy].
	Millis bool
	Limits []string
	// Expires is the time at which the override ends, in UTC. The zero time means never.
	Expires time.Time
	// Line is the line in the file, as in [Policy].
	Line int
}
