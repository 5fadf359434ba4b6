// Package protocol has the requests and replies of replication, with the names of Redis: PSYNC,
// REPLCONF, FAILOVER, ROLE and the section replication of INFO. Commands read and write these
// types, and package replication acts on them. Neither imports the other.
package protocol
