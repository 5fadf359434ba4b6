// Package servers keeps the list of the servers that share an engine, a Valkey or Redis.
//
// Each server writes a small record into one hash of the engine, once a second, and reads the records of the others. A
// record expires some seconds after its server has stopped writing it. Servers do not connect to each other.
//
// Each server also publishes a summary, which others read only for RL.TOP FLEET and for reports of all servers. It has
// a key of its own, because it is large. This package does not interpret the bytes of a summary.
//
// The hash is [Key], in the slot of the keys of package records. Its fields are the ids of servers. See docs/adr/0024.
package servers
