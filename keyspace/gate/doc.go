// Package gate keeps everybody out but one: batches of commands run inside, and whoever
// closes the [Gate] waits until all others have left. Entering costs one atomic store and
// one load.
package gate
