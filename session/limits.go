package session

// How much one command may do on an event loop is counted in units of work. Package
// command says what a unit is, and what a command does that would do more than
// command.MaxLoopWork: it runs in the background (offload.go), or in slices ([Session.runSlice]).

// turnWork is how many units a turn may do before others have theirs.
const turnWork = 8 << 10

// What a turn and a client may use. These are not options: a larger turn would
// let one client delay another, a smaller one would cost throughput.
const (
	turnBytes    = 64 << 10 // of replies, after which others have their turn
	turnCommands = 1024
	unauthBytes  = 16 << 10 // in and out before authentication
)

// monitoredEnough is from how many bytes on those who monitor are sent commands before the
// batch is over.
const monitoredEnough = 64 << 10

// turnEffects is after how many bytes of effects a turn ends, so that few of them
// wait in memory for the disk even if values are large.
const turnEffects = 1 << 20

// leastRefused is the smallest input whose command is refused: more than a client that
// has yet to authenticate may send, or one that sends a line.
const leastRefused = 64 << 10

// mostLooks is how many looks of EvictClients, a tenth of a second apart, leave alone a client whose replies
// take most, and mostLeaving how many times maxmemory-clients all clients may keep then.
const (
	mostLooks   = 5
	mostLeaving = 2
)
