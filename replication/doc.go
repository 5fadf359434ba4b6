// Package replication keeps other nodes equal to this one. A node that has replicas sends
// them a snapshot of its keys, and from then on its stream: the frames of its log, as they
// are. A node that follows another applies that stream, and passes it on to replicas of its
// own, so that an offset means the same on every node of one history.
//
// An offset is how many bytes of frames there were since the history began. A byte at
// offset o has o bytes before it. PSYNC asks for the number of the next byte, counted from
// 1, which is one more: that difference is made in this package and nowhere else.
//
// The sending side is [Source]. It keeps the latest part of the stream ([Backlog]), decides
// whether a replica may go on where it was, and makes the [transport.Pump] that the
// connection of a replica is filled by. No goroutine belongs to a replica, and nothing
// waits for one: who is too slow is overtaken by the backlog and loses its connection.
//
// The role is that of [Node]. It keeps a link to the primary that it follows, applies what
// comes and writes it to the source as it came. It promotes itself, and hands over. What
// stops the world is done by the goroutine of [Node.Run]: commands only leave requests.
//
// These rules hold:
//   - A replica that has acknowledged an offset has applied everything before it.
//   - Nodes with the same history and the same offset have the same state.
//   - A replica holds a part of a state only until its full sync ends, and says so.
package replication
