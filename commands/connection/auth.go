package connection

import (
	"bytes"
	"sync"
	"time"

	"github.com/cellserver/cellserver/commands/acl"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// authGuard slows down guessing: failed attempts of one address pass under our own
// GCRA, ten at once and then one a second; what exceeds that is answered a second
// later, without the store or any loop waiting for it.
type authGuard struct {
	mu     sync.Mutex
	tats   map[string]limit.Instant // guarded by mu: TAT by address
	failed int64                    // guarded by mu
	failing
}

// authPenalty is how long an attempt beyond the limit waits for its answer.
const authPenalty = time.Second

// maxAuthAddresses bounds the table of the guard.
const maxAuthAddresses = 10000

var authQuota = func() gcra.Quota {
	q, err := gcra.NewQuota(9, 1, 1)
	if err != nil {
		panic(err)
	}
	return q
}()

// Exceeded implements [command.Logins]. It reports whether the address has used up its failures.
func (g *authGuard) Exceeded(addr string, now limit.Instant) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, d, _ := gcra.Decide(g.tats[addr], now, &authQuota, 0)
	return d.Remaining == 0
}

// Failed implements [command.Logins]. It charges a failed attempt to the address.
func (g *authGuard) Failed(addr string, now limit.Instant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed++
	if len(g.tats) >= maxAuthAddresses {
		g.forget(now)
	}
	if next, _, write := gcra.Decide(g.tats[addr], now, &authQuota, 1); write {
		g.tats[addr] = next
	}
}

// forget makes room: of a few addresses it drops those that are forgiven by now, or
// the least indebted one if none is. Looking at all of them for every attempt would be
// a way to keep the server busy.
func (g *authGuard) forget(now limit.Instant) {
	const few = 64
	looked, least, owner := 0, limit.MaxInstant, ""
	for addr, tat := range g.tats {
		if looked++; looked > few {
			break
		}
		if tat <= now {
			delete(g.tats, addr)
		} else if tat < least {
			least, owner = tat, addr
		}
	}
	if len(g.tats) >= maxAuthAddresses {
		delete(g.tats, owner)
	}
}

// failures is how many attempts have failed since the start.
func (g *authGuard) failures() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

// tryLogin checks the credentials, makes the client one of that user if they are right, and
// then runs done, or answers that they are wrong: at once, or, for an address that keeps
// failing, after a second, with the session parked. They have to be right then, too.
func tryLogin(c *command.Call, name string, password []byte, done func(w *resp.Writer)) {
	g, s, now := command.ServerState[authGuard](c), c.Client, c.Store.Now()
	addr := command.HostOf(s.Peer)
	late, ok := g.Exceeded(addr, now), false
	find := func() (*acl.User, bool) { return c.Server.Users.Authenticate(name, password) }
	if late {
		_, ok = find()
	} else {
		ok = s.LoginAs(find)
	}
	if !ok {
		g.Failed(addr, now)
		g.note(s.ID, name, now)
		auditLogin(c, name)
		c.Server.Host.NoteCommand(s, c.Cmd)
		s.NoteRefusal(c.Store, acl.LogEntry{Reason: acl.DeniedAuth, Object: string(c.Args[0]), User: name})
	}
	finish := func(w *resp.Writer, ok bool) {
		if ok {
			g.end(s.ID)
			done(w)
		} else {
			w.Error(resp.ErrWrongPass)
		}
	}
	if !late || s.Exclusive {
		finish(c.W, ok && !late) // a transaction cannot wait, so there it is no use trying
		return
	}
	p, users := c.NewWait(len(password)+len(name)), c.Server.Users
	password = bytes.Clone(password) // which lies in the input
	find = func() (*acl.User, bool) { return users.Authenticate(name, password) }
	p.Resume = func(w *resp.Writer) { finish(w, ok && s.LoginAs(find)) }
	stop := c.Store.AfterFunc(authPenalty, func() { p.Finish(nil) })
	p.Cancel = func() { stop() }
	c.Park(p)
}
