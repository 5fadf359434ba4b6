// Package tracking implements CLIENT TRACKING and related commands. It sends a client an
// invalidation message when a key that the client has read changes.
package tracking
