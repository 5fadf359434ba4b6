// Package entry defines the entries that keys hold: an [Entry] has a [Kind], a value of bytes and
// an expiry.
//
// The keyspace, its tables, the log and the files use these types. The meaning of a limiter's bytes
// is defined in the package of the limiter, such as gcra or slidingwindow.
package entry
