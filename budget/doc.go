// Package budget bounds the memory that all long replies take together. A command reserves memory
// from a [Budget] before it builds a long reply, and waits until enough is free. Each piece of the
// reply returns its memory when it has been sent.
package budget
