// Package persistence stores the state of a keyspace on disk. The state consists of a snapshot of
// all keys (the base), files with all later effects (the increments), and a manifest that lists the
// files in use.
//
// These rules hold, whatever fails:
//   - After a crash, no change is lost that the chosen fsync policy promises to keep.
//   - A file is loaded as a whole, or refused, or cut at a place where a crash may have left it
//     incomplete. A cut is logged.
//   - A file whose write or fsync has failed once is not used any more. Since memory has the whole
//     state, a new base is written and replaces the file.
//
// docs/formats describes the formats byte by byte. All access to the disk is through [FS], so that
// tests can record calls, make them fail, and simulate a crash.
package persistence
