// Package protocol has the requests and replies of replication as Redis names them. They are
// PSYNC, REPLCONF, FAILOVER, ROLE and the section replication of INFO. Commands read and write
// these types, and package replication acts on them. Neither imports the other.
package protocol
