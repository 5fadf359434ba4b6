// Package budget bounds the memory that long replies take together. A reply reserves memory
// from a Budget before it is built, and waits until enough is free. Its pieces return the
// memory as they are sent.
package budget
