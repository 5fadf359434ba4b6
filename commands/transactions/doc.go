// Package transactions implements MULTI, EXEC and WATCH, which run several commands of a client
// at one instant.
package transactions
