// Package transactions has MULTI, EXEC and WATCH, which run the commands of a client at one
// instant.
package transactions
