// Package entry is what a key can hold: an [Entry] of a [Kind], whose value is bytes.
//
// It is what tables, records, files and the keyspace have in common. What the bytes of a
// limiter mean, and what is decided by them, is in the packages of the families.
package entry
