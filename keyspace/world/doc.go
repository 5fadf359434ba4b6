// Package world keeps everybody out but one: batches of commands run inside, and whoever
// stops the [Lock] waits until all others have left. Entering costs one atomic store and
// one load.
package world
