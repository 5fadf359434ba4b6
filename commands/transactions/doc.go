// Package transactions implements MULTI, EXEC and WATCH, by which a client runs several commands at
// one instant.
package transactions
