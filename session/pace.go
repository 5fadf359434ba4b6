package session

import "github.com/cellserver/cellserver/command"

const (
	// exactCommands is the maximum number of commands in a group, which have arrived together,
	// for which each command is timed. Two clock readings take a fiftieth of a round trip.
	exactCommands = 4
	// sampleEvery is the number of brief calls that share one measurement in larger groups. Two
	// clock readings for each call would add a tenth to the cost of a pipelined command. The
	// first call of each command is also timed, so that no command seems to take no time.
	sampleEvery = 16
	// briefWork is the maximum number of units of work for which a call counts as brief. It takes
	// some microseconds.
	briefWork = 64
)

// pace says which calls of a command are timed if more than exactCommands commands have arrived
// together.
type pace uint8

const (
	eachCall pace = iota // each call, because calls may take any time
	byWork               // each call that counts much work or leaves the event loop, and one in sampleEvery of the others
	sampled              // one call in sampleEvery, because all calls take about the same short time
)

// pacesOf returns the pace of each command of t, by command id. The pace is sampled for commands with
// FlagFast, for limiters, and for commands on keys with the complexity O(1). The pace is byWork for
// other commands on keys whose long calls count their work or leave the event loop. With a Remote no
// pace is byWork, because the work is done elsewhere. The pace of all remaining commands is eachCall.
// Administrative and blocking commands and fences do not count as commands on keys here.
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
