package lua

import (
	"github.com/cellserver/cellserver/lua/compiler"
	"github.com/cellserver/cellserver/lua/sandbox"
	"github.com/cellserver/cellserver/resp"
	"github.com/cellserver/cellserver/shared"
)

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

// Script is a compiled script. It does not change and may be used by any number of runs
// at once.
type Script = compiler.Script

// Call is one redis.call or redis.pcall of a confined script.
type Call = compiler.Call

// Flags are what a script says about itself in its first line.
type Flags = compiler.Flags

// MaxSource is the longest source that Compile takes, in bytes.
const MaxSource = compiler.MaxSource

// Compile reads a script, as [compiler.Compile] says.
func Compile(source []byte) (*Script, error) { return compiler.Compile(source) }

// Declared is what the first line of a script that has yet to be compiled says; it is
// nothing if that is wrong.
func Declared(source []byte) Flags { return compiler.Declared(source) }

// Pool keeps states for executions, which take 30 us and 60 KB to make. It may be
// used by several goroutines.
type Pool struct {
	memory *sandbox.Memory
	idle   idleRuns
}

// NewPool returns a pool whose runs keep to limits.
func NewPool(limits Limits) *Pool {
	return &Pool{memory: sandbox.NewMemory(limits)}
}

// Get returns a run that is clean, not killed, and the caller's own until Put.
func (p *Pool) Get() *Run {
	if r := p.idle.pop(); r != nil {
		return r
	}
	return newRun(p.memory)
}

// Put gives back a run that is not executing. One that was killed, overflowed,
// panicked or took much memory is closed instead of kept.
func (p *Pool) Put(r *Run) {
	if !r.reusable() || !p.idle.push(r) {
		r.close()
	}
}

// Execute runs s with its KEYS and ARGV, and appends its one reply, which may be
// an error, to w in the protocol of w. keys and args are not kept.
func (r *Run) Execute(s *Script, keys, args [][]byte, host Host, w *resp.Writer) {
	r.execute(s, keys, args, host, w)
}

// PauseAfter has pause called on the executing goroutine, once, when the next
// execution has taken about as long as so many instructions and is not over: never
// while a command runs. The execution goes on when pause returns. Without a pause
// the script is killed then.
func (r *Run) PauseAfter(instructions int, pause func()) {
	r.sandbox.Guard.PauseAfter(instructions, pause)
}

// Spent is about how many instructions the last execution took.
func (r *Run) Spent() int { return r.sandbox.Guard.Spent() }

// Kill stops what the run executes, or would execute next, with the error reason
// ("Script killed by user with SCRIPT KILL."), to which the place in the script
// is added. The script cannot catch it. Any goroutine may call it; the first
// reason counts. It returns at once: the execution ends at its next instruction,
// or when the command that it waits for is done.
func (r *Run) Kill(reason string) { r.sandbox.Guard.Kill(reason) }
