// Package registry keeps the policies of a server. It has the entries in force, the table that
// calls look them up in, and the history of changes.
//
// Each entry and each change is a string in the database of the server
// ([keyspace.System]), so they are part of the log, of snapshots and of replicas like keys. A
// [Registry] changes entries with [Registry.Update], which writes them first and then publishes a
// new table. [Registry.Observe] takes the records of a file or a primary.
//
// Package policy defines the meaning of entries, and commands/policies has the commands.
package registry
