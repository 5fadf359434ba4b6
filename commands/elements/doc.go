// Package elements replies the elements of collections: as they are if they are few,
// beside the loops if the reply is long. It has no commands.
package elements
