// Package login checks the passwords of users that log in to the HTTP ports of a server.
package login

import (
	"context"
	"sync"
	"time"

	"github.com/cellserver/cellserver/acl"
)

// Limiter limits and counts attempts to log in. Any goroutine may call it.
type Limiter interface {
	// Attempt is called before a login of user from address is checked. If refused is true, too
	// many logins from the address have failed, and the login is not checked. Otherwise the caller
	// waits for wait, checks the login, and calls judged with the result, unless the request is
	// abandoned.
	Attempt(user, address string) (wait time.Duration, refused bool, judged func(u *acl.User, ok bool))
}

// Door checks logins. Any goroutine may call its methods.
type Door struct {
	users   *acl.Users
	limiter Limiter
	waiting chan struct{} // has an element for each login that waits after a failed one
	stopped chan struct{} // closed by Stop
	stop    sync.Once
}

// maxWaiting is the maximum number of logins that wait at the same time after failed ones. Further
// logins are refused.
const maxWaiting = 16

// New returns a door for users. l limits the rate at which passwords can be guessed; nil means no limit.
func New(users *acl.Users, l Limiter) *Door {
	return &Door{users: users, limiter: l, waiting: make(chan struct{}, maxWaiting), stopped: make(chan struct{})}
}

// Stop ends the waits of all logins.
func (d *Door) Stop() { d.stop.Do(func() { close(d.stopped) }) }

// Login returns the user called name if the password is right and the user is on, otherwise nil. An empty name
// is that of the user default. address is that of the client, without the port. After failed logins from there
// Login waits, or until ctx ends. If refused is true, there were too many, and the password was not checked.
func (d *Door) Login(ctx context.Context, name, password, address string) (u *acl.User, refused bool) {
	if name == "" {
		name = acl.DefaultUser
	}
	judged := func(*acl.User, bool) {}
	if d.limiter != nil {
		wait, refused := time.Duration(0), false
		if wait, refused, judged = d.limiter.Attempt(name, address); refused || wait > 0 && !d.serveOut(ctx, wait) {
			return nil, true
		}
	}
	u, ok := d.users.Authenticate(name, []byte(password))
	if judged(u, ok); !ok {
		return nil, false
	}
	return u, false
}

// serveOut waits for the given time, or until ctx ends or the door is stopped. It returns false
// without waiting if too many logins already wait.
func (d *Door) serveOut(ctx context.Context, wait time.Duration) bool {
	select {
	case d.waiting <- struct{}{}:
		defer func() { <-d.waiting }()
	default:
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-d.stopped:
	}
	return true
}
