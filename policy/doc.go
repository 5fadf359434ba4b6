// Package policy defines limits that are stored in the server: named policies, and changes to them
// for some keys. It consists of data and functions, without I/O, clock or goroutines.
//
// [Limits] are parsed clauses. An [Entry] is what a change leaves behind: a policy, its
// candidate, an override, a boost, a block or an exemption. A [Builder] takes entries and makes
// a [Table], which never changes and may be read by any goroutine: [Table.Policy] finds a
// policy, and [Policy.Find] what applies to a key.
//
// Commands, the files that entries are kept in, and the YAML document are elsewhere.
package policy
