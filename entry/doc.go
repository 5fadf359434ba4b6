// Package entry defines what a key can hold: an [Entry] of a [Kind] with a value of bytes.
//
// Tables, records, files and the keyspace share it. The packages of the families define the meaning
// of a limiter's bytes.
package entry
