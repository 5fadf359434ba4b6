// Package budget bounds the memory that long replies take together. A reply asks a
// Budget for its memory before it is made, and waits until there is room; its pieces
// give it back as they are sent.
package budget
