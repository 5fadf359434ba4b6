package commands

import "github.com/cellserver/cellserver/resp"

// tracking is the state of CLIENT TRACKING. We hold no table of what a client
// has read: under tracking every read is answered and invalidated in one go, so
// that nothing is ever cached and nothing can be stale.
type tracking struct {
	on     bool
	optIn  bool
	optOut bool
	noLoop bool
	// said is 2 while CLIENT CACHING runs and 1 while the command or the transaction
	// after it does.
	said int8
	// caching is what it said.
	caching bool
}

// follows reports whether the running command's keys are tracked.
func (t *tracking) follows() bool {
	switch {
	case !t.on:
		return false
	case t.optIn:
		return t.said > 0 && t.caching
	case t.optOut:
		return t.said == 0 || t.caching
	}
	return true
}

// age ends what CLIENT CACHING said, one command after it or, if that is MULTI, with
// the transaction.
func (s *Session) age() {
	inside := s.exclusive || s.tx != nil && s.tx.active
	if s.tracking.said > 0 && !inside {
		s.tracking.said--
	}
}

// invalidate tells a tracking client to forget the keys of the read it has just
// been answered. Only RESP3 can carry that beside replies, and not inside one: what a
// transaction reads is invalidated behind its reply.
func (c *Ctx) invalidate() {
	s := c.S
	if s.proto != 3 || c.fail || c.Cmd.Flags&FlagReadonly == 0 || !s.tracking.follows() {
		return
	}
	w := c.W
	if s.exclusive {
		w = &c.pushes
	}
	for _, i := range c.Cmd.Keys.positions(c.Args) {
		w.Push(2)
		w.BulkString("invalidate")
		w.Array(1)
		w.Bulk(c.Args[i])
	}
}

const (
	errNoBroadcast resp.Error = "ERR BCAST and PREFIX are not supported: nothing can be cached, every read is invalidated at once"
	errNoRedirect  resp.Error = "ERR REDIRECT is not supported: invalidations are sent to the RESP3 connection that read"
	errCachingMode resp.Error = "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
)

func clientTracking(c *Ctx) {
	on, ok := onOff(c.Args[2])
	if !ok {
		c.Fail(resp.ErrSyntax)
		return
	}
	t := tracking{on: on}
	for _, a := range c.Args[3:] {
		switch {
		case isWord(a, "OPTIN"):
			t.optIn = true
		case isWord(a, "OPTOUT"):
			t.optOut = true
		case isWord(a, "NOLOOP"):
			t.noLoop = true
		case isWord(a, "BCAST"), isWord(a, "PREFIX"):
			c.Fail(errNoBroadcast)
			return
		case isWord(a, "REDIRECT"):
			c.Fail(errNoRedirect)
			return
		default:
			c.Fail(resp.ErrSyntax)
			return
		}
	}
	old := &c.S.tracking
	switch {
	case !on:
		t = tracking{}
	case t.optIn && t.optOut:
		c.Fail("ERR You can't specify both OPTIN mode and OPTOUT mode")
		return
	case t.optIn && old.optOut, t.optOut && old.optIn:
		c.Fail("ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.")
		return
	}
	c.S.tracking = t
	c.OK()
}

func clientCaching(c *Ctx) {
	t := &c.S.tracking
	if !t.on {
		c.Fail(errCachingMode)
		return
	}
	yes := isWord(c.Args[2], "YES")
	switch {
	case !yes && !isWord(c.Args[2], "NO"):
		c.Fail(resp.ErrSyntax)
		return
	case yes && !t.optIn:
		c.Fail("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
		return
	case !yes && !t.optOut:
		c.Fail("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
		return
	}
	t.said, t.caching = 2, yes
	c.OK()
}

func clientGetRedir(c *Ctx) {
	if c.S.tracking.on {
		c.W.Int(0)
		return
	}
	c.W.Int(-1)
}

func clientTrackingInfo(c *Ctx) {
	t := &c.S.tracking
	flags := []string{"off"}
	if t.on {
		flags = []string{"on"}
		for _, f := range []struct {
			set  bool
			name string
		}{
			{t.optIn, "optin"},
			{t.optOut, "optout"},
			{t.said > 0 && t.caching, "caching-yes"},
			{t.said > 0 && !t.caching, "caching-no"},
			{t.noLoop, "noloop"},
		} {
			if f.set {
				flags = append(flags, f.name)
			}
		}
	}
	c.W.Map(3)
	c.W.BulkString("flags")
	c.W.Set(len(flags))
	for _, f := range flags {
		c.W.BulkString(f)
	}
	c.W.BulkString("redirect")
	clientGetRedir(c)
	c.W.BulkString("prefixes")
	c.W.Array(0)
}
