package connection

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// failing has the open connections that have failed to log in, with the user that each has tried.
// Any goroutine may use it.
type failing struct {
	any      atomic.Bool // whether a failure was ever noted; until then, closing a connection takes no lock
	userMu   sync.Mutex
	byClient map[int64]string      // the user of the latest failed login by the ID of the client; guarded by userMu
	byUser   map[string]*wrongUser // the state of each user name, for at most maxFailing names; guarded by userMu
}

// wrongUser is a user name with which connections have failed to log in.
type wrongUser struct {
	// now is the number of these connections that are open. most is the maximum of now since the
	// latest failure that came after failingFor without a failure.
	now, most int64
	last      limit.Instant
}

const (
	// maxFailing is the maximum number of users that are tracked, and maxFailingName the maximum
	// length of their names in bytes.
	maxFailing     = 64
	maxFailingName = 128
	// failingFor is the time without a failure after which the next failure resets the maximum of a
	// user.
	failingFor = time.Minute
)

// note records that the client with the ID client has failed to log in as user at the instant now.
// It ignores a new user if the table is full or the name is longer than maxFailingName.
func (f *failing) note(client int64, user string, now limit.Instant) {
	f.userMu.Lock()
	defer f.userMu.Unlock()
	if f.byClient == nil {
		f.byClient, f.byUser = make(map[int64]string), make(map[string]*wrongUser)
	}
	u := f.byUser[user]
	if u == nil {
		if !f.room(now) || len(user) > maxFailingName {
			return
		}
		u = new(wrongUser)
		f.byUser[user] = u
	}
	if now.Sub(u.last) > failingFor {
		u.most = u.now
	}
	u.last = now
	if f.byClient[client] != user {
		f.drop(client)
		f.byClient[client] = user
		u.now++
		u.most = max(u.most, u.now)
	}
	f.any.Store(true)
}

// room reports whether one more user can be tracked. If the table is full, it first drops the users
// without open connections whose latest failure is older than failingFor. f.userMu is held.
func (f *failing) room(now limit.Instant) bool {
	if len(f.byUser) < maxFailing {
		return true
	}
	for name, u := range f.byUser {
		if u.now == 0 && now.Sub(u.last) > failingFor {
			delete(f.byUser, name)
		}
	}
	return len(f.byUser) < maxFailing
}

// drop removes the client with the ID client. f.userMu is held.
func (f *failing) drop(client int64) {
	if user, is := f.byClient[client]; is {
		delete(f.byClient, client)
		f.byUser[user].now--
	}
}

// end records that the client with the ID client has logged in or has disconnected.
func (f *failing) end(client int64) {
	if !f.any.Load() {
		return
	}
	f.userMu.Lock()
	defer f.userMu.Unlock()
	f.drop(client)
}

// Failing returns the maximum number of connections that were open at the same time after they had
// failed to log in as user. The first failure of a user after a minute without one resets its
// maximum. Failing is 0 for a user that is not tracked.
func (f *failing) Failing(user string) int64 {
	f.userMu.Lock()
	defer f.userMu.Unlock()
	if u := f.byUser[user]; u != nil {
		return u.most
	}
	return 0
}
