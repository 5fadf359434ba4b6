// Package registry keeps the policies of a server: the entries in force, the table that calls
// look them up in, and the history of changes.
//
// Each entry and each change is a string in the database of the server
// ([keyspace.System]). So the log, snapshots and replicas have them as they have keys. A
// [Registry] changes entries with [Registry.Update], which writes first and then publishes a new
// table. It is told by [Registry.Tell] of what a file or a primary brings.
//
// What entries mean is in package policy, and commands are in commands/policies.
package registry
