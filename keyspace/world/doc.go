// Package world provides a lock that stops all batches of commands but one. A batch enters the
// [Lock] and leaves it at its end. A goroutine that stops the world waits until all other batches
// have left. Entering costs one atomic store and a few atomic loads.
package world
