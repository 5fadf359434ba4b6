package acl

import (
	"crypto/sha256"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// DefaultUser is the user of a connection that has not logged in.
const DefaultUser = "default"

// ErrUserName says that a name contains a character that would end it in a file.
var ErrUserName = errors.New("Usernames can't contain spaces or null characters") //nolint:staticcheck // Redis' words

// Users has all users. Any goroutine may use it.
type Users struct {
	vocabulary Vocabulary
	// Default is the user default, which always exists and is never replaced.
	Default     *User
	allChannels atomic.Bool
	closings    atomic.Int64

	change sync.Mutex   // held during each change, however long it takes
	memory atomic.Int64 // the memory of all rules; modified only while change is held
	bound  atomic.Int64 // the memory up to which Set may add

	mu     sync.RWMutex     // never held for long, since logins wait for it
	byName map[string]*User // guarded by mu; modified only while change is held
}

// NewUsers returns the users of a new server: default, with all permissions and no password.
func NewUsers(v Vocabulary) *Users {
	us := &Users{vocabulary: v, Default: &User{Name: DefaultUser}}
	r := us.defaultRules()
	us.memory.Store(int64(r.cost))
	us.bound.Store(MaxMemory)
	us.Default.rules.Store(r)
	us.byName = map[string]*User{DefaultUser: us.Default}
	return us
}

// defaultRules returns the initial rules of the user default.
func (us *Users) defaultRules() *Rules {
	r, err := newRules(us.vocabulary, true).Apply(us.vocabulary, []string{"on", "nopass", "+@all", "~*", "&*"}, true)
	if err != nil {
		panic(err) // a mistake in this package
	}
	return r
}

// SetAllChannels sets whether new users may use all channels (acl-pubsub-default).
func (us *Users) SetAllChannels(all bool) { us.allChannels.Store(all) }

// SetBound sets how many bytes Set may make users take, at most [MaxMemory]. Users of files may
// take more: the operator has written them.
func (us *Users) SetBound(bytes int64) { us.bound.Store(min(bytes, MaxMemory)) }

// Memory returns about how many bytes all users take.
func (us *Users) Memory() int64 { return us.memory.Load() }

// Find returns the user of that name, or nil.
func (us *Users) Find(name string) *User {
	us.mu.RLock()
	defer us.mu.RUnlock()
	return us.byName[name]
}

// all returns all users in order of their names.
func (us *Users) all() []*User {
	us.mu.RLock()
	all := slices.Collect(maps.Values(us.byName))
	us.mu.RUnlock()
	slices.SortFunc(all, func(a, b *User) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Names returns the names of all users in order.
func (us *Users) Names() []string {
	all := us.all()
	names := make([]string, len(all))
	for i, u := range all {
		names[i] = u.Name
	}
	return names
}

// List returns all users as lines of a file, in order of their names.
func (us *Users) List() []string {
	_, lines := us.Lines()
	return slices.Collect(lines)
}

// Lines returns the number of users, and an iterator over the result of List.
func (us *Users) Lines() (n int, lines iter.Seq[string]) {
	all := us.all()
	return len(all), func(yield func(string) bool) {
		for _, u := range all {
			if !yield("user " + u.Name + " " + u.Rules().Text()) {
				return
			}
		}
	}
}

// Set applies all rules of ACL SETUSER to a user, or none of them, and creates the user if it does
// not exist. before are the earlier rules, nil for a new user.
func (us *Users) Set(name string, words []string) (u *User, before *Rules, err error) {
	if spaced(name) {
		return nil, nil, ErrUserName
	}
	us.change.Lock()
	defer us.change.Unlock()
	from, had := newRules(us.vocabulary, us.allChannels.Load()), 0
	if u = us.Find(name); u != nil {
		before = u.Rules()
		from, had = before, before.cost
	}
	next, err := from.Apply(us.vocabulary, words, us.allChannels.Load())
	if err != nil {
		return nil, nil, err
	}
	grown := us.memory.Load() + int64(next.cost-had)
	if u == nil {
		grown += int64(2 * len(name))
	}
	if len(name) > MaxRules || next.tooLong() || grown > us.bound.Load() && next.cost > had {
		return nil, nil, errTooLarge
	}
	if u != nil {
		us.memory.Store(grown)
		u.rules.Store(next)
		return u, before, nil
	}
	u = &User{Name: name}
	u.rules.Store(next)
	us.mu.Lock()
	defer us.mu.Unlock()
	if len(us.byName) >= MaxUsers {
		return nil, nil, errTooLarge
	}
	us.byName[name] = u
	us.memory.Store(grown)
	return u, nil, nil
}

// tooLong reports whether the text of the rules is longer than a user may have.
func (r *Rules) tooLong() bool { return r.cost > MaxRules/2 && len(r.Text()) > MaxRules }

// Check returns the error that Set would return for these rules. The user need not exist.
func (us *Users) Check(words []string) error {
	_, err := newRules(us.vocabulary, false).Apply(us.vocabulary, words, false)
	return err
}

// Delete removes users, except default, and returns those that existed. No client can log in as them
// any more; the caller closes their clients.
func (us *Users) Delete(names []string) (gone []*User) {
	us.change.Lock()
	defer us.change.Unlock()
	us.mu.Lock()
	defer us.mu.Unlock()
	for _, name := range names {
		u := us.byName[name]
		if u == nil || u == us.Default {
			continue
		}
		delete(us.byName, name)
		us.memory.Add(-int64(u.Rules().cost + 2*len(name)))
		us.end(u)
		gone = append(gone, u)
	}
	us.closings.Add(1)
	return gone
}

// end removes all permissions of a deleted user, for work that still runs as the user and has no
// connection to close.
func (us *Users) end(u *User) { u.rules.Store(newRules(us.vocabulary, false).seal()) }

// Closings returns how often clients of users had to be closed. Code that logs a client in reads it
// before and after: see [Users.Delete].
func (us *Users) Closings() int64 { return us.closings.Load() }

// noRules stands in for the rules of an unknown user, so that a login takes the same time.
var noRules = new(Rules)

// Authenticate returns the user of that name if the password is right and it is on. A name
// that is not known, a user that is off and a wrong password take the same work.
func (us *Users) Authenticate(name string, password []byte) (u *User, ok bool) {
	sum := sha256.Sum256(password)
	r := noRules
	if u = us.Find(name); u != nil {
		r = u.Rules()
	}
	if ok, _ = r.accepts(&sum); !ok || !r.On {
		return nil, false
	}
	return u, true
}

// ByName returns the user of that name if it is on, without a password: a certificate, for example, has
// authenticated the client.
func (us *Users) ByName(name string) (u *User, ok bool) {
	if u = us.Find(name); u == nil || !u.Rules().On {
		return nil, false
	}
	return u, true
}

// NeedsLogin reports whether a connection has to log in before it may run commands.
func (us *Users) NeedsLogin() bool {
	r := us.Default.Rules()
	return !r.NoPass || !r.On
}

// AnyUsable reports whether any user can log in and run a command. byCertificate is whether certificates
// log users in, so that they need no password.
func (us *Users) AnyUsable(byCertificate bool) bool {
	return slices.ContainsFunc(us.all(), func(u *User) bool {
		r := u.Rules()
		return r.On && (r.NoPass || len(r.passwords) > 0 || byCertificate) && r.mayRun()
	})
}

// withPassword returns the rules with that password only; an empty one means that none is needed.
func (r *Rules) withPassword(password string) *Rules {
	next := r.clone()
	next.NoPass, next.passwords = password == "", nil
	if password != "" {
		next.passwords = []digest{sha256.Sum256([]byte(password))}
	}
	return next.seal()
}

// SetPassword sets requirepass: the only password of default; with an empty one default needs none.
func (us *Users) SetPassword(password string) {
	us.change.Lock()
	defer us.change.Unlock()
	before := us.Default.Rules()
	next := before.withPassword(password)
	us.memory.Add(int64(next.cost - before.cost))
	us.Default.rules.Store(next)
}
