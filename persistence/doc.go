// Package persistence keeps the state of a keyspace on disk: a snapshot of
// everything (the base), files that every effect since is appended to (the
// increments), and a manifest that says which of them count.
//
// What must hold, whatever fails:
//   - What was acknowledged within the chosen fsync policy is there after a crash.
//   - No wrong state is ever loaded. A file is loaded whole, or cut at a place that
//     can only be the end of what a crash left, which is reported, or refused.
//   - A file whose write or fsync has failed once is never trusted again: memory
//     has all there is, so a fresh base is written and takes over.
//
// The formats are described byte by byte in docs/formats. Everything reaches the
// disk through [FS], so that tests can record, break and crash it.
package persistence
