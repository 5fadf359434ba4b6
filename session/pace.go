package session

import "github.com/cellserver/cellserver/commands/command"

const (
	// exactCommands is up to how many commands that have arrived together are each timed: two clock
	// readings are a fiftieth of a round trip.
	exactCommands = 4
	// sampleEvery is how many brief calls share one measurement otherwise: two clock readings for
	// each would cost a tenth of a pipelined command. The first call of each command is also timed,
	// so that no command seems to take no time.
	sampleEvery = 16
	// briefWork is up to how many units of work a call counts as brief: some microseconds.
	briefWork = 64
)

// pace says which calls of a command are timed if many commands have arrived together.
type pace uint8

const (
	eachCall pace = iota // each call: calls may take any time
	byWork               // calls that count much work or leave the loop, and a sample of the others
	sampled              // a sample: all calls take about the same short time
)

// pacesOf returns the pace of each command, by id. It is sampled for commands with FlagFast, for
// limiters, and for others whose time does not depend on the data. The time of other commands
// depends on what they find: a long call counts its work or leaves the loop. With a Remote that
// work is done elsewhere, so these calls are each timed.
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
