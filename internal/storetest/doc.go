// Package storetest starts real nodes of Redis and Valkey for tests. It starts a single node, a
// cluster, or a node with replicas and sentinels, on free loopback ports and in temporary folders.
// Nodes can be killed, paused and restarted, and slots moved, while the test is running. Every wait
// for a node has a deadline. All processes end with the test.
package storetest
