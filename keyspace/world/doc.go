// Package world provides a lock that stops all batches of commands but one. Batches run inside the
// [Lock], and a goroutine that stops it waits until all others have left. Entering costs one atomic
// store and one load.
package world
