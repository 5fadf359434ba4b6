// Package object is a collection as the store sees it, of whichever kind: it is loaded from
// flat bytes, changed, and asked for its bytes, its cost or what was changed of it.
package object
