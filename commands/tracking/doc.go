// Package tracking implements CLIENT TRACKING and related commands, for client-side caching. The
// server sends a client an invalidation message when a key that the client has read changes or, in
// BCAST mode, when any key with one of the client's prefixes changes.
package tracking
