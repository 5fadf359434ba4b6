package scripting

import (
	"github.com/cellserver/cellserver/budget"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

// invocation is one call of a script.
type invocation struct {
	script     *script
	keys, args [][]byte
	readonly   bool
	memory     *budget.Grant // the memory for the result, nil if none was requested; the function that runs the script ends the grant
}

// end returns the part of the requested memory that the result does not use.
func (call *invocation) end() {
	call.memory.End()
	call.memory = nil
}

// refused returns the error if the call may not begin, "" if it may. It also makes the call
// read-only if the script declares that it does not write. If the script declares no flags, whether
// it may write is checked when it calls a command that writes.
func (call *invocation) refused(c *command.Call) resp.Error {
	f := call.script.Flags()
	writes := f.Declared && !f.NoWrites
	if err := c.HaltedScript(writes, f.AllowStale); err != "" {
		return err
	}
	if writes {
		switch {
		case c.Journal != nil && c.Journal.Refuses():
			return c.Refusal()
		case call.readonly:
			return errReadonlyCall
		case !f.AllowOOM && c.Full():
			return resp.ErrOOM
		}
	}
	call.readonly = call.readonly || f.NoWrites
	return ""
}

const (
	errNoScript     resp.Error = "NOSCRIPT No matching script. Please use EVAL."
	errNegativeKeys resp.Error = "ERR Number of keys can't be negative"
	errFlushMode    resp.Error = "ERR SCRIPT FLUSH only support SYNC|ASYNC option"
	errReadonlyCall resp.Error = "ERR Can not execute a script with write flag using *_ro command."
	errSourceLong   resp.Error = "ERR Error compiling script (new function): user_script: the script is too long, at most 65536 bytes"
)
