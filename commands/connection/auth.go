package connection

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"

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

// exceeded reports whether the address has used up its failures.
func (g *authGuard) exceeded(addr string, now limit.Instant) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, d, _ := gcra.Decide(g.tats[addr], now, &authQuota, 0)
	return d.Remaining == 0
}

// note charges a failed attempt to the address.
func (g *authGuard) note(addr string, now limit.Instant) {
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

// login checks a user and password. An unknown user costs the same work as a
// wrong password.
func login(e *command.Server, user string, password []byte) bool {
	l := e.Limits()
	sum := sha256.Sum256(password)
	match := subtle.ConstantTimeCompare(sum[:], l.PasswordHash[:]) == 1
	known := subtle.ConstantTimeCompare([]byte(user), []byte(command.DefaultUser)) == 1
	return known && (match || l.Password == "")
}

// tryLogin checks the credentials and then runs done with the outcome: at once,
// or, for an address that keeps failing, after a second, with the session parked.
func tryLogin(c *command.Call, user string, password []byte, done func(w *resp.Writer, ok bool)) {
	g, s, now := command.ServerState[authGuard](c), c.Client, c.Store.Now()
	addr := command.HostOf(s.Peer)
	late := g.exceeded(addr, now)
	ok := login(c.Server, user, password)
	if !ok {
		g.note(addr, now)
		auditLogin(c)
	}
	if !late || s.Exclusive {
		done(c.W, ok && !late) // a transaction cannot wait, so there it is no use trying
		return
	}
	p := c.NewWait()
	p.Resume = func(w *resp.Writer) { done(w, ok) }
	stop := c.Store.AfterFunc(authPenalty, func() { p.Finish(nil) })
	p.Cancel = func() { stop() }
	c.Park(p)
}
