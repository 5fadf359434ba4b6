// Package replication implements the commands of replication. They are REPLICAOF and FAILOVER for
// operators and Sentinel, PSYNC and REPLCONF for replicas, ROLE and WAIT for clients. The
// commands check their arguments and reply. The [env.Node] of the server carries them out.
package replication
