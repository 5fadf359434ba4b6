package lua

import "github.com/cellserver/cellserver/shared"

// Host is the environment of one execution. Its methods are called on the goroutine that executes
// the script, never concurrently.
type Host interface {
	// Call runs a command and returns its whole reply in RESP2 or RESP3, according to proto (2
	// unless the script called redis.setresp(3)). An error is an error reply. The arguments and the
	// reply are valid until the next Call. args has at least one element; its elements must not be
	// kept. refs are the strings of the reply that are stored elsewhere, as in [resp.Writer]: the
	// execution releases them at its end, and does not use the slice after the next Call.
	Call(args [][]byte, proto int) (reply []byte, refs []shared.Ref)
	// Log receives a message of redis.log. Level is 0 (debug) to 3 (warning).
	Log(level int, msg []byte)
}

// Allower is a [Host] that answers redis.acl_check_cmd. With any other Host every command counts as
// known and allowed.
type Allower interface {
	// Allowed reports whether the command exists, and whether the script may call it.
	Allowed(args [][]byte) (known, allowed bool)
}

// Waiter is a [Host] that may run a script again.
type Waiter interface {
	// Waits is called when a script is ended because others use the memory that it needs. If it
	// returns true, no reply is written.
	Waits() bool
}
