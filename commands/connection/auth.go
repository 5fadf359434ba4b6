package connection

import (
	"bytes"
	"net/netip"
	"sync"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/gcra"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// authGuard limits failed logins by GCRA, to slow down the guessing of passwords. Each source
// address may have ten failures at once and then one a second, and all sources together 100 at once
// and then ten a second. The reply to a further attempt is delayed until one more failure is
// allowed; meanwhile neither the store nor an event loop is blocked. So a client cannot try more
// passwords by opening more connections. If the delay would exceed maxAuthWait, the attempt is
// refused without checking its password. Any goroutine may use the guard.
type authGuard struct {
	mu     sync.Mutex
	tats   map[string]limit.Instant // the theoretical arrival time (TAT) of each source; guarded by mu
	all    limit.Instant            // the TAT of all sources together; guarded by mu
	known  map[string]limit.Instant // the instant until which each source is exempt from the limit of all sources; guarded by mu
	failed int64                    // the number of failed attempts; guarded by mu
	failing
}

func newAuthGuard() *authGuard {
	return &authGuard{tats: make(map[string]limit.Instant), known: make(map[string]limit.Instant)}
}

const (
	// authPenalty is the delay of the reply to a refused attempt outside of a transaction.
	authPenalty = time.Second
	// maxAuthWait is the longest delay of an attempt that is not refused. It is less than the
	// default of auth-timeout.
	maxAuthWait = 5 * time.Second
	// maxAuthAddresses is the maximum number of entries in each table of the guard.
	maxAuthAddresses = 10000
	// knownFor is the time for which a source that has logged in with a password is exempt from the
	// limit of all sources.
	knownFor = time.Hour
)

var authQuota, authQuotaOfAll = quotaOf(10, 1), quotaOf(100, 10)

// quotaOf returns a quota that allows most failures at once and then rate failures a second. It
// panics if there is no such quota.
func quotaOf(most, rate int64) gcra.Quota {
	q, err := gcra.NewQuota(most-1, rate, 1)
	if err != nil {
		panic(err)
	}
	return q
}

// sourceOf returns the source of addr under which failures are counted: the address itself or, for
// IPv6, its /64 network, because a single host can usually use all addresses of that network. An
// addr that is no IP address is its own source.
func sourceOf(addr string) string {
	ip, err := netip.ParseAddr(addr)
	if err != nil || !ip.Is6() || ip.Is4In6() {
		return addr
	}
	net, _ := ip.WithZone("").Prefix(64)
	return net.String()
}

// Attempt implements [command.Logins]. It returns the delay of the reply, or that the attempt is
// refused. An attempt whose reply is delayed is charged as a failure at once, so that parallel
// attempts get later turns.
func (g *authGuard) Attempt(addr string, now limit.Instant) command.Attempt {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := command.Attempt{Source: sourceOf(addr)}
	a.Together = g.known[a.Source] <= now
	if a.Wait = untilFree(g.tats[a.Source], now, &authQuota); a.Together {
		a.Wait = max(a.Wait, untilFree(g.all, now, &authQuotaOfAll))
	}
	switch {
	case a.Wait > maxAuthWait:
		a.Refused = true
		g.failed++
	case a.Wait > 0:
		g.charge(&a, now, 1)
	}
	return a
}

// untilFree returns the time from now until the quota q, with the theoretical arrival time tat,
// allows one more failure; 0 if it does now.
func untilFree(tat, now limit.Instant, q *gcra.Quota) time.Duration {
	if _, d, _ := gcra.Decide(tat, now, q, 1); !d.Allowed() {
		return d.RetryAfter
	}
	return 0
}

// Judged implements [command.Logins]. It charges a failed attempt that Attempt has not charged. It
// takes back the charge of a successful attempt and, if byPassword is set, exempts its source from
// the limit of all sources for the time knownFor.
func (g *authGuard) Judged(a command.Attempt, now limit.Instant, ok, byPassword bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !ok:
		if g.failed++; a.Wait == 0 {
			g.charge(&a, now, 1)
		}
		return
	case a.Wait > 0:
		g.charge(&a, now, -1)
	}
	if byPassword {
		if len(g.known) >= maxAuthAddresses {
			forget(g.known, now)
		}
		g.known[a.Source] = now.Add(knownFor)
	}
}

// Dropped implements [command.Logins]. It takes back the charge of an attempt that was not judged.
func (g *authGuard) Dropped(a command.Attempt, now limit.Instant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.Wait > 0 && !a.Refused {
		g.charge(&a, now, -1)
	}
}

// charge charges n failures to the source of a, and to all sources together unless the source is
// exempt, even beyond the limit. A negative n takes failures back. g.mu is held.
func (g *authGuard) charge(a *command.Attempt, now limit.Instant, n int64) {
	if len(g.tats) >= maxAuthAddresses && g.tats[a.Source] == 0 {
		forget(g.tats, now)
	}
	g.tats[a.Source] = charged(g.tats[a.Source], now, &authQuota, n)
	if a.Together {
		g.all = charged(g.all, now, &authQuotaOfAll, n)
	}
}

// charged returns the theoretical arrival time tat after n more failures under the quota q. n may
// be negative.
func charged(tat, now limit.Instant, q *gcra.Quota, n int64) limit.Instant {
	return max(tat, now).Add(time.Duration(n) * q.Interval())
}

// forget makes room for one more entry in table, which has an instant for each source. It looks at
// up to 64 entries and deletes those whose instant is not after now. If the table is still full, it
// deletes the entry with the earliest instant among them. Looking at all entries at each attempt
// would let attackers keep the server busy.
func forget(table map[string]limit.Instant, now limit.Instant) {
	const few = 64
	looked, least, owner := 0, limit.MaxInstant, ""
	for source, at := range table {
		if looked++; looked > few {
			break
		}
		if at <= now {
			delete(table, source)
		} else if at < least {
			least, owner = at, source
		}
	}
	if len(table) >= maxAuthAddresses {
		delete(table, owner)
	}
}

// failures returns the number of failed login attempts since the start of the server.
func (g *authGuard) failures() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

// errTooManyLogins is the reply to an attempt outside of a transaction whose password was not
// checked.
const errTooManyLogins resp.Error = "ERR too many failed logins from your address, try again in some seconds"

// tryLogin checks the credentials name and password. If they are right, it logs the client in as
// that user and calls done, which writes the reply; otherwise it replies with an error. After too
// many failures it parks the session and delays the reply, and the credentials must still be right
// at the end of the delay. In a transaction it replies with an error instead of delaying the reply.
func tryLogin(c *command.Call, name string, password []byte, done func(w *resp.Writer)) {
	m := c.Server.Machine(c.Store)
	g, s, now := command.ServerState[authGuard](c), c.Client, m.Now()
	a := g.Attempt(command.HostOf(s.Peer), now)
	if s.Exclusive && a.Wait > 0 { // a transaction cannot wait, so the attempt is refused
		g.Dropped(a, now)
		a.Refused = true
	}
	late, users := a.Wait > 0, c.Server.Users
	var user *acl.User
	find := func() (is *acl.User, ok bool) {
		user, ok = users.Authenticate(name, password)
		return user, ok
	}
	ok := false
	switch {
	case a.Refused:
	case late:
		_, ok = find()
	default:
		ok = s.LoginAs(find)
	}
	if !a.Refused {
		g.Judged(a, now, ok, ok && !user.Rules().NoPass)
	}
	if !ok {
		g.note(s.ID, name, now)
		auditLogin(c, name)
		c.Server.Host.Calls.NoteCommand(s, c.Cmd)
		s.NoteRefusal(c.Store, acl.LogEntry{Reason: acl.DeniedAuth, Object: string(c.Args[0]), User: name})
	}
	finish := func(w *resp.Writer, ok bool) {
		switch {
		case ok:
			g.end(s.ID)
			done(w)
		case a.Refused && !s.Exclusive:
			w.Error(errTooManyLogins)
		default:
			w.Error(resp.ErrWrongPass)
		}
	}
	if !late || s.Exclusive {
		finish(c.W, ok)
		return
	}
	p, wait := c.NewWait(len(password)+len(name)), a.Wait
	if a.Refused {
		wait = authPenalty
	}
	password = bytes.Clone(password) // the password is copied, because it refers to the input of the batch
	p.Resume = func(w *resp.Writer) { finish(w, ok && s.LoginAs(find)) }
	stop := m.AfterFunc(wait, func() { p.Finish(nil) })
	p.Cancel = func() { stop() }
	c.Park(p)
}
