package lua

import "github.com/cellserver/cellserver/shared"

// Host is the world of one execution. Its methods are called on the goroutine
// that executes, never two at once.
type Host interface {
	// Call runs a command and returns its whole reply in RESP2 or RESP3, as proto
	// says (2 unless the script called redis.setresp(3)). An error is an error
	// reply. The arguments and the reply are valid until the next Call. args has
	// at least one element; none of its elements may be kept. refs are the strings of
	// the reply that lie elsewhere, as [resp.Writer] has them: the execution releases
	// them when it is over, and has forgotten the slice by the next Call.
	Call(args [][]byte, proto int) (reply []byte, refs []shared.Ref)
	// Log takes a message of redis.log. Level is 0 (debug) to 3 (warning).
	Log(level int, msg []byte)
}

// Allower is a [Host] that answers redis.acl_check_cmd. With any other Host
// every command that is asked for counts as known and allowed.
type Allower interface {
	// Allowed says whether the command exists, and whether it might be called.
	Allowed(args [][]byte) (known, allowed bool)
}

// Waiter is a [Host] that may run a script again.
type Waiter interface {
	// Waits is asked when a script is ended because others take the memory that it needs.
	// If it returns true no reply is written.
	Waits() bool
}
