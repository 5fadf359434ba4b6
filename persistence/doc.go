// Package persistence stores the state of a keyspace on disk. It writes a snapshot of everything
// (the base), files with all later effects (the increments), and a manifest that lists the files in
// use.
//
// These rules hold, whatever fails:
//   - After a crash every change is there that was acknowledged under the chosen fsync policy.
//   - No wrong state is ever loaded. A file is loaded whole, or refused, or cut at a place that
//     only a crash can have left, and the cut is reported.
//   - A file whose write or fsync has failed once is never trusted again. Memory has the whole
//     state, so a new base is written and replaces the file.
//
// docs/formats describes the formats byte by byte. Everything reaches the disk through [FS], so
// that tests can record calls, make them fail, and simulate a crash.
package persistence
