// Package replication implements the commands of replication. These are REPLICAOF and FAILOVER for
// operators and Sentinel, PSYNC and REPLCONF for replicas, ROLE and WAIT for clients. They check
// their arguments and reply; the [env.Node] of the server acts.
package replication
