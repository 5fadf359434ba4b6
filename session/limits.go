package session

// The work of a command on an event loop is counted in units. Package command defines the unit, and
// says what happens to a command that would do more than [command.MaxLoopWork]: it runs in the
// background (offload.go), or in slices ([Session.runSlice]).

// turnWork is the number of units of work after which a turn ends, so that other sessions have
// their turn.
const turnWork = 8 << 10

// Bounds of a turn and of an unauthenticated client. They are not options: a larger turn would
// let one client delay other clients, and a smaller one would reduce throughput.
const (
	turnBytes    = 64 << 10 // bytes of replies after which a turn ends, so that other sessions have their turn
	turnCommands = 1024
	unauthBytes  = 16 << 10 // maximum number of bytes received and sent before authentication; with more, the connection is closed
)

// monitoredEnough is the number of bytes of collected MONITOR lines above which the MONITOR
// clients receive the lines before the end of the batch.
const monitoredEnough = 64 << 10

// turnEffects is the number of bytes of journal records that end a turn, so that few effects wait
// in memory for the disk even if values are large.
const turnEffects = 1 << 20

// minRefused is the number of bytes that the input of a client must exceed before a command is
// refused to free its memory. It is more than an unauthenticated client may send, and more than
// an inline command.
const minRefused = 64 << 10

// maxLooks is the number of consecutive calls of [Engine.EvictClients], a tenth of a second
// apart, after which a client whose memory is mostly replies is no longer spared. maxLeaving
// limits this: no client is spared while all clients together take more than maxLeaving times
// maxmemory-clients.
const (
	maxLooks   = 5
	maxLeaving = 2
)
