package session

// The work of a command on an event loop is counted in units. Package command defines the unit, and
// says what happens to a command that would do more than [command.MaxLoopWork]: it runs in the
// background (offload.go), or in slices ([Session.runSlice]).

// turnWork is how many units a turn may do before other sessions have theirs.
const turnWork = 8 << 10

// Bounds of a turn and of an unauthenticated client. They are not options: a larger turn would let
// one client delay another, and a smaller one would reduce throughput.
const (
	turnBytes    = 64 << 10 // of replies, after which other sessions have their turn
	turnCommands = 1024
	unauthBytes  = 16 << 10 // received and sent before authentication
)

// monitoredEnough is the number of bytes from which MONITOR clients receive the commands before the
// end of the batch.
const monitoredEnough = 64 << 10

// turnEffects is how many bytes of effects end a turn, so that few effects wait in memory for the
// disk even if values are large.
const turnEffects = 1 << 20

// minRefused is the smallest input for which a command is refused. It is more than an
// unauthenticated client may send, and more than an inline command.
const minRefused = 64 << 10

// maxLooks is how many calls of EvictClients, a tenth of a second apart, spare a client whose
// memory is mostly replies. maxLeaving is up to how many times maxmemory-clients all clients may
// take meanwhile.
const (
	maxLooks   = 5
	maxLeaving = 2
)
