// Package protocol has the requests and replies of replication as Redis names them. These are
// PSYNC, REPLCONF, FAILOVER, ROLE and the section replication of INFO. The commands read and write
// them, and package replication acts on them; neither imports the other.
package protocol
