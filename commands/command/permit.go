package command

import (
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/commands/env"
	"github.com/cellserver/cellserver/resp"
)

// Refusal says which part of a call a user is not permitted to do.
type Refusal struct {
	Reason acl.Denied
	At     int // index of the key or channel among the arguments; 0 for the command
}

// QuickAllowed reports whether a user with the rules r is permitted to make a call, as far as a
// quick check can tell: it can for calls about one key, which most are. If it returns false,
// Refused decides.
func (c *Command) QuickAllowed(r *acl.Rules, args [][]byte) bool {
	return c.Keys.single && r.Allow(c.ID, args[1], c.Keys.access)
}

// Refused returns the part of a call that a user with the rules r is not permitted to do, with the
// reason DeniedNothing if the call is permitted. A single selector has to permit all of it.
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

// refusedBy is Refused for one selector. spanning says that a command which reaches keys that are
// not among its arguments needs permission for all keys.
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

// firstArgument returns the argument that a rule +command|argument refers to.
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

// refusedKey returns the index of the first key that s does not permit, 0 if it permits all.
func (c *Command) refusedKey(s *acl.Selector, args [][]byte) (at int) {
	if d := c.Keys.Derived; d != nil {
		var room [128]byte
		if s.Key(d.Append(room[:0], args), c.Keys.access) {
			return 0
		}
		return d.Last
	}
	i, end, step := c.Keys.Range(args)
	for n := 0; i < end; n, i = n+1, i+step {
		if !s.Key(args[i], c.Keys.UseAt(args, n).Access()) {
			return i
		}
	}
	return 0
}

// refusedChannel returns the index of the first channel that s does not permit, 0 if it permits
// all.
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

// Forbidden reports whether the user of the client is not permitted to make the call c, and records
// a refusal in ACL LOG. running is the command that the client has called: that of c, or the one
// that runs it.
func (c *Call) Forbidden(in acl.Context, running *Command) (is Refusal, forbidden bool) {
	if c.Client.User.Load().Rules().Unrestricted {
		return is, false
	}
	c.Server.Host.NoteCommand(c.Client, running)
	return c.Client.forbidden(c.Store, c.Cmd, c.Args, in)
}

// forbidden is Call.Forbidden for any call of the client. Any goroutine may call it.
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

// NoteRefusal adds a refusal of the client to ACL LOG. Any goroutine may call it.
func (s *Client) NoteRefusal(st env.Store, e acl.LogEntry) {
	now := st.Now()
	if s.Server.ClientLine != nil {
		e.Client = string(s.Server.ClientLine(s, now))
	}
	s.Server.Refusals.Add(e, int64(st.Civil(now))/int64(time.Millisecond))
}

// Forbidden returns the error for a waiting command if its user is no longer permitted to call it,
// and records that in ACL LOG; "" if the user is. The goroutine that wakes a command checks it,
// because rules may have changed while the command waited. Any goroutine may call it.
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

// Error returns the error reply.
func (is Refusal) Error(cl *Client, cmd *Command) resp.Error {
	return resp.Error("NOPERM " + is.Text(cl, cmd))
}

// Text returns what is refused, in Redis' words and without an error code.
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
