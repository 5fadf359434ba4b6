package session

import "github.com/cellserver/cellserver/commands/command"

const (
	// exactCommands is how many commands may have come together for each to be timed: two
	// readings are a fiftieth of a round trip.
	exactCommands = 4
	// sampleEvery is how many brief calls share one reading otherwise: two readings for each
	// would cost a tenth of a pipelined command. The first call of each
	// command is timed as well, so that none which ran seems to have taken no time.
	sampleEvery = 16
	// briefWork is how many units of work a call may count that is brief: some microseconds.
	briefWork = 64
)

// pace is which calls of a command are timed if many commands have come together.
type pace uint8

const (
	eachCall pace = iota // they may take any time
	byWork               // those that count much work or go on elsewhere, and a sample of the others
	sampled              // a sample: all take about the same, and little
)

// pacesOf says, by id, which calls of a command are timed. Of those flagged fast, limiters, and
// others whose time depends on nothing a sample is. What a call of others takes depends on what
// it finds: if that is much, it is counted as work or leaves the loop. Where a Remote decides
// that is found out elsewhere.
func pacesOf(t *command.Table, remote bool) []pace {
	const long = command.FlagAdmin | command.FlagBlocking | command.FlagFence
	paces := make([]pace, len(t.Entries))
	for id, c := range t.Entries {
		ofKey := c.Keys.First > 0 && c.Flags&long == 0
		switch {
		case c.Flags&command.FlagFast != 0, c.Categories&command.CatRateLimit != 0, ofKey && c.Complexity == "O(1)":
			paces[id] = sampled
		case ofKey && !remote && c.StaysOnLoop() == "":
			paces[id] = byWork
		}
	}
	return paces
}
