// Package replicas has the commands of replication: REPLICAOF and FAILOVER for operators and
// Sentinel, PSYNC and REPLCONF for replicas, ROLE and WAIT for clients. They check words and
// reply; what happens is up to the [env.Node] of the server.
package replication
