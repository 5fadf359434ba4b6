// Package budget bounds the memory that all long replies take together. A reply reserves memory
// from a [Budget] before it is built, and waits until enough is free. Its pieces return the memory
// when they were sent.
package budget
