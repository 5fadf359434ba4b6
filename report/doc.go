// Package report says how the server is, in the words of somebody who was woken by it. Its
// types are the JSON of the admin port and of RL.REPORT: an [Overview] with a [Verdict], a
// [History], the keys that are denied most, groups of keys, and what has changed.
//
// It counts nothing itself and opens no port.
package report
