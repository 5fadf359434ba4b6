// Package policy defines limits that are stored in the server: named policies, and changes to them
// for some keys. It consists of data and functions, without I/O, clock or goroutines.
//
// [Limits] are parsed clauses. An [Entry] is one setting: a policy, its candidate, an override, a
// boost, a block or an exemption. A [Builder] collects entries and creates a [Table], which is
// immutable and may be read concurrently: [Table.Policy] finds a policy, and [Policy.Find] the
// entries that apply to a key.
//
// Other packages have the commands, the files with entries, and the YAML document.
package policy
