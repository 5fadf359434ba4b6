// Package standby is what commands ask of the node that replicates: REPLICAOF, PSYNC, WAIT,
// ROLE and FAILOVER act through its interface [Node]. The package has types and [Alone], the
// node of a server that does not replicate. It has no socket and no stream: these are in
// package replication, which the commands do not import.
package standby
