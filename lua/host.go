package lua

import "github.com/cellserver/cellserver/shared"

// Host is the part of the server that a script can access during one execution. Its methods are
// called on the goroutine that executes the script, never concurrently.
type Host interface {
	// Call runs a command and returns its whole reply, in RESP2 or RESP3 according to proto, which
	// is 2 unless the script called redis.setresp(3). If the command fails, reply is an error
	// reply. args has at least one element. Call must not keep args or its elements after it
	// returns. reply must stay valid until the next Call. refs are the strings of the reply that
	// are stored elsewhere, as in [resp.Writer]. The execution releases them at its end, and does
	// not use the slice refs after the next Call.
	Call(args [][]byte, proto int) (reply []byte, refs []shared.Ref)
	// Log receives a message of redis.log. level is from 0 (debug) to 3 (warning). msg has at most
	// 1,024 bytes.
	Log(level int, msg []byte)
}

// Allower is a [Host] that answers redis.acl_check_cmd. With any other Host, every command counts
// as known and allowed.
type Allower interface {
	// Allowed reports whether the command args[0] exists, and whether the script may call it with
	// the arguments args[1:].
	Allowed(args [][]byte) (known, allowed bool)
}

// Waiter is a [Host] that may run a script again after it has lacked memory.
type Waiter interface {
	// Waits is called when a script has been ended because the heap of the process was full. If
	// Waits returns true, the execution writes no reply, since the host will run the script again.
	Waits() bool
}
