// Package replication implements primaries and replicas: it keeps the state of other nodes equal
// to this one's. A primary sends each replica a snapshot of its keys, and then its stream. The
// stream is the frames of the primary's log, unchanged. A replica applies the stream and passes
// it on to its own replicas, so an offset means the same on every node with the same history.
//
// An offset is the number of bytes of frames since the history began. The byte at offset o has o
// bytes before it. PSYNC asks for the number of the next byte, counted from 1, which is the
// offset plus one.
//
// The sending side is [Source]. It keeps the latest part of the stream in a [Backlog], decides
// whether a replica gets a partial or a full resynchronization, and makes the [transport.Pump]
// that fills the replica's connection. A replica's connection has no goroutine of its own, and
// nothing waits for a replica. If a replica is too slow, the backlog overwrites bytes that the
// replica has not read, and its connection is closed.
//
// [Node] has the role of the server. It keeps a link to the primary that it follows, applies the
// stream and writes it to the source unchanged. It also promotes itself and fails over to a
// replica. The goroutine of [Node.Run] does everything that has to stop all other users of the
// keyspace. Commands only leave requests for that goroutine.
//
// These rules hold:
//   - A replica that has acknowledged an offset has applied everything before the offset.
//   - Nodes with the same history and the same offset have the same state.
//   - A replica has an incomplete state only during a full resynchronization, and then reports that it is loading.
package replication
