// Package object provides one interface for all kinds of collections. An [Object] is loaded from
// flat bytes and can be changed. It returns its bytes, its cost and the delta of its changes.
// [Trees] holds the large collections of a database.
package object
