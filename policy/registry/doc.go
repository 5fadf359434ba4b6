// Package registry holds the policies of a server. It has the entries in force, the table in which
// calls look them up, and the history of changes.
//
// Each entry and each change is a string in the system database of the server ([keyspace.System]),
// so they are part of the log, of snapshots and of replicas like keys. A [Registry] changes entries
// with [Registry.Update], which writes them first and then publishes a new table.
// [Registry.Observe] takes records from a file or a primary.
//
// With the option store the records are there: see package remote/records. [Registry.ObserveChange]
// and [Registry.ObserveAll] take them over. [Registry.Overlay] puts the entries of the policy file
// in force without writing them to the store.
//
// Package policy defines the meaning of entries, and commands/policies has the commands.
package registry
