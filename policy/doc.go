// Package policy has the limits that live in the server: named policies, and what changes them
// for some keys. It is data and functions: no I/O, no clock, no goroutine.
//
// [Limits] are parsed clauses. An [Entry] is what a change leaves behind: a policy, its
// candidate, an override, a boost, a block or an exemption. A [Builder] takes entries and makes
// a [Table], which never changes and may be read by any goroutine: [Table.Policy] finds a
// policy, and [Policy.Find] what applies to a key.
//
// Commands, the files that entries are kept in, and the YAML document are elsewhere.
package policy
