package limiters

import (
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/ratelimit/hotkeys"
)

// caller describes a running command to the statistics of keys. It implements [hotkeys.Caller].
type caller struct{ call *command.Call }

// Volatile implements [hotkeys.Caller]. It reports whether the memory of the keys may be reused
// before the batch ends.
func (c caller) Volatile() bool { return c.call.Volatile }

// Now implements [hotkeys.Caller]. It returns the instant of the call.
func (c caller) Now() limit.Instant { return c.call.Store.Now() }

// Describe implements [hotkeys.Caller]. It adds to d the client, the name of the command, and its
// arguments without keys and members, and marks where the arguments that give the limit end. For a
// policy it adds only the name of the policy. If a Remote has decided, the arguments of the command
// are no longer available, so d gets none.
func (c caller) Describe(d *hotkeys.Detail, family decide.Family) {
	call := c.call
	d.Client, d.Command = call.Client.ID, call.Cmd.Name
	from, limitWords := 2, 3
	switch family {
	case decide.Counter:
		describeBounds(d, call.Args)
		return
	case decide.Window, decide.Lease:
		limitWords = 2
	case decide.Several:
		if _, end, _ := call.Cmd.Keys.Range(call.Args); end > 0 {
			from, limitWords = end, len(call.Args)
		}
	}
	words, member := call.Args, len(call.Args)
	switch family { // a member is shown to operators as a key is, since it may identify a caller
	case decide.Lease:
		words = words[:min(len(words), from+limitWords)]
	case decide.Several:
		member = memberAt(words, from)
	}
	if namesPolicy(call) { // the policy has the limit; the argument after its name is the key
		from, limitWords, words = 1, 1, words[:min(len(words), 2)]
	}
	for i := from; i < len(words); i++ {
		if i == member || i == member+1 {
			continue
		}
		if d.Add(words[i]); i < from+limitWords {
			d.EndLimit()
		}
	}
}

// describeBounds adds the arguments of an INCREX that give the limit and its period to d. It leaves
// out an expiry that is an instant, because each call may have a different one.
func describeBounds(d *hotkeys.Detail, words [][]byte) {
	for i := 2; i+1 < len(words); i++ {
		switch name := words[i]; {
		case arg.IsWord(name, "LBOUND"), arg.IsWord(name, "UBOUND"), arg.IsWord(name, "EX"), arg.IsWord(name, "PX"):
			i++
			d.Add(name)
			d.Add(words[i])
		}
	}
	d.EndLimit()
}

// memberAt returns the index of the option MEMBER in words, the arguments of an RL.MULTI, at or
// after the index from; len(words) if there is none.
func memberAt(words [][]byte, from int) int {
	for i := from; i < len(words); i++ {
		if arg.IsWord(words[i], "MEMBER") {
			return i
		}
	}
	return len(words)
}
