package command

import (
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/env"
	"github.com/cellserver/cellserver/resp"
)

// Refusal says why a user may not make a call, and which argument is the reason.
type Refusal struct {
	Reason acl.Denied
	At     int // the index of the refused key or channel in the arguments; 0 if the command itself is refused
}

// QuickAllowed is a quick check for calls about one key, which most calls are. It returns true if a
// user with the rules r may call c with args. If it returns false, the caller has to call Refused.
func (c *Command) QuickAllowed(r *acl.Rules, args [][]byte) bool {
	return c.Keys.single && r.Allow(c.ID, args[1], c.Keys.access)
}

// AllowedSomewhere reports whether a user with the rules r may call c with at least one key and first argument.
func (c *Command) AllowedSomewhere(r *acl.Rules) bool { return r.AllowSome(c.ID, c.Keys.access) }

// Refused returns the reason why a user with the rules r may not call c with args. Its Reason is
// DeniedNothing if one selector permits the whole call. Otherwise Refused returns the refusal of
// the selector that came closest, by reason and then by the position of the argument. spanning has
// the same meaning as in refusedBy.
func (c *Command) Refused(r *acl.Rules, args [][]byte, spanning bool) (worst Refusal) {
	if r.Unrestricted {
		return Refusal{}
	}
	for _, s := range r.Selectors() {
		is := c.refusedBy(s, args, spanning)
		if is.Reason == acl.DeniedNothing {
			return is
		}
		if is.Reason > worst.Reason || is.Reason == worst.Reason && is.At > worst.At {
			worst = is
		}
	}
	return worst
}

// refusedBy does what Refused does, for the selector s alone. spanning says that a command which
// accesses keys that are not among its arguments needs permission for all keys.
func (c *Command) refusedBy(s *acl.Selector, args [][]byte, spanning bool) Refusal {
	if c.Flags&FlagNoAuth == 0 && !s.Command(c.ID, c.firstArgument(args)) {
		return Refusal{Reason: acl.DeniedCommand}
	}
	if !s.AllKeys() {
		if spanning && c.Flags&FlagEveryKey != 0 {
			return Refusal{Reason: acl.DeniedKey}
		}
		if at := c.refusedKey(s, args); at > 0 {
			return Refusal{acl.DeniedKey, at}
		}
	}
	if at := c.refusedChannel(s, args); at > 0 {
		return Refusal{acl.DeniedChannel, at}
	}
	return Refusal{}
}

// firstArgument returns the argument that a rule such as +command|argument refers to: the first one
// after the command, or after the subcommand if c is one; nil if there is none.
func (c *Command) firstArgument(args [][]byte) []byte {
	at := 1
	if c.Parent != nil {
		at = 2
	}
	if at < len(args) {
		return args[at]
	}
	return nil
}

// refusedKey returns the index in args of the first key that s does not permit; 0 if s permits all
// keys. For a derived key it is the index of the last argument that the key is made from. The user
// needs permission for all keys of the call.
func (c *Command) refusedKey(s *acl.Selector, args [][]byte) (at int) {
	if at := c.Keys.FirstDerived(args); at > 0 {
		var room [128]byte
		for d := c.Keys.Derived; at > 0; at = d.After(args, at) {
			if !s.Key(d.Append(room[:0], args, at), c.Keys.access) {
				return at
			}
		}
		return 0
	}
	i, end, step := c.Keys.Range(args)
	for n := 0; i < end; n, i = n+1, i+step {
		if !s.Key(args[i], c.Keys.UseAt(args, n).Access()) {
			return i
		}
	}
	return 0
}

// refusedChannel returns the index in args of the first channel that s does not permit; 0 if s
// permits all channels.
func (c *Command) refusedChannel(s *acl.Selector, args [][]byte) (at int) {
	ch := &c.Keys.Channels
	last := ch.Last
	if last < 0 {
		last += len(args)
	}
	for i := ch.First; ch.First > 0 && i <= last && i < len(args); i++ {
		if ch.Patterns && !s.ChannelPattern(args[i]) || !ch.Patterns && !s.Channel(args[i]) {
			return i
		}
	}
	return 0
}

// Forbidden reports whether the user of the client may not make the call c, and records a refusal
// in ACL LOG with the context in. running is the command that the client has called: the command of
// c, or the one that runs it, such as EXEC.
func (c *Call) Forbidden(in acl.Context, running *Command) (is Refusal, forbidden bool) {
	if c.Client.User.Load().Rules().Unrestricted {
		return is, false
	}
	c.Server.Host.Calls.NoteCommand(c.Client, running)
	return c.Client.forbidden(c.Store, c.Cmd, c.Args, in)
}

// forbidden does what [Call.Forbidden] does, for a call of cmd with args by the client s. Any
// goroutine may call it.
func (s *Client) forbidden(st env.Store, cmd *Command, args [][]byte, in acl.Context) (is Refusal, forbidden bool) {
	u := s.User.Load()
	r := u.Rules()
	if r.Unrestricted {
		return is, false
	}
	is = cmd.Refused(r, args, s.Server.Limits().EveryKey)
	if is.Reason == acl.DeniedNothing {
		return is, false
	}
	object := cmd.Name
	if is.At > 0 {
		object = acl.LogText(cmd.Keys.Name(args, is.At))
	}
	s.NoteRefusal(st, acl.LogEntry{Reason: is.Reason, Context: in, Object: object, User: u.Name})
	return is, true
}

// NoteRefusal adds the refusal e of the client to ACL LOG, with the line that describes the client.
// Any goroutine may call it.
func (s *Client) NoteRefusal(st env.Store, e acl.LogEntry) {
	now := st.Now()
	if s.Server.ClientLine != nil {
		e.Client = string(s.Server.ClientLine(s, now))
	}
	s.Server.Refusals.Add(e, int64(st.Civil(now))/int64(time.Millisecond))
}

// Forbidden returns the error for a waiting command if its user may no longer call it, and "" if
// the user may. It records a refusal in ACL LOG and sets p.Rejected. The goroutine that wakes a
// command calls it, because rules may have changed while the command waited. Any goroutine may call
// it.
func (p *Wait) Forbidden(st env.Store) resp.Error {
	if p.Args == nil {
		return ""
	}
	is, forbidden := p.Client.forbidden(st, p.Cmd, p.Args, acl.TopLevel)
	if !forbidden {
		return ""
	}
	p.Rejected = true
	return is.Error(p.Client, p.Cmd)
}

// Error returns the error reply for the refusal of a call of cmd by cl.
func (is Refusal) Error(cl *Client, cmd *Command) resp.Error {
	return resp.Error("NOPERM " + is.Text(cl, cmd))
}

// Text returns the text of the refusal of a call of cmd by cl, in Redis' words and without an error
// code.
func (is Refusal) Text(cl *Client, cmd *Command) string {
	switch is.Reason {
	case acl.DeniedKey:
		return "No permissions to access a key"
	case acl.DeniedChannel:
		return "No permissions to access a channel"
	default:
		return "User " + cl.UserName() + " has no permissions to run the '" + cmd.Name + "' command"
	}
}
