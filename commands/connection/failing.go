package connection

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellserver/cellserver/limit"
)

// failing follows which open connections cannot log in, and as whom. Any goroutine may use it.
type failing struct {
	any      atomic.Bool // whether there is any, so that others pay nothing when they close
	userMu   sync.Mutex
	byClient map[int64]string      // guarded by userMu: the user whose password was wrong
	byUser   map[string]*wrongUser // guarded by userMu
}

// wrongUser is a user as whom connections fail to log in.
type wrongUser struct {
	now, most int64 // connections; most at once since it began
	last      limit.Instant
}

const (
	// maxFailing bounds the users that are followed, and maxFailingName their names.
	maxFailing     = 64
	maxFailingName = 128
	// failingFor is after how long without a failure it begins anew.
	failingFor = time.Minute
)

// note says that a client has failed to log in as user.
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

// room reports whether one more user can be followed, and forgets those who have not failed for
// long. f.userMu is held.
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

// drop forgets a client. f.userMu is held.
func (f *failing) drop(client int64) {
	if user, is := f.byClient[client]; is {
		delete(f.byClient, client)
		f.byUser[user].now--
	}
}

// end says that a client has logged in, or is closed.
func (f *failing) end(client int64) {
	if !f.any.Load() {
		return
	}
	f.userMu.Lock()
	defer f.userMu.Unlock()
	f.drop(client)
}

// Failing returns how many connections could not log in as user at once, at most.
func (f *failing) Failing(user string) int64 {
	f.userMu.Lock()
	defer f.userMu.Unlock()
	if u := f.byUser[user]; u != nil {
		return u.most
	}
	return 0
}
