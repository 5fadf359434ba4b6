// Package object provides the collections of the store by one interface for all kinds. An [Object]
// is loaded from flat bytes and changed, and returns its bytes, its cost or the delta of its
// changes.
package object
