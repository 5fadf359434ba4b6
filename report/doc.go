// Package report describes the state of the server in plain words, for an operator during an
// incident. Its types are the JSON of the admin port and of RL.REPORT: an [Overview] with a
// [Verdict], a [History], the keys that are denied most, groups of keys, and recent changes.
//
// It has no counters of its own and opens no port.
package report
