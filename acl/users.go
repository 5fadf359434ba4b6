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

// DefaultUser is the name of the user that a client has before it logs in.
const DefaultUser = "default"

// ErrUserName is the error for a user name with a character that would end it in a file.
var ErrUserName = errors.New("Usernames can't contain spaces or null characters") //nolint:staticcheck // Redis' words

// Users has all users of a server. Any goroutine may use it.
type Users struct {
	vocabulary Vocabulary
	// Default is the user default, which always exists and is never replaced.
	Default     *User
	allChannels atomic.Bool
	closings    atomic.Int64

	change sync.Mutex   // held during each change of users, which may take long
	memory atomic.Int64 // approximate memory of all users in bytes; written only while change is held
	bound  atomic.Int64 // the maximum of memory, in bytes, for changes by Set

	mu     sync.RWMutex     // held only briefly, since logins wait for it
	byName map[string]*User // the users by name; guarded by mu, and written only while change is held, too
}

// NewUsers returns the users of a new server: only the user default, with all permissions and
// without a password. v has the commands and categories that rules may name.
func NewUsers(v Vocabulary) *Users {
	us := &Users{vocabulary: v, Default: &User{Name: DefaultUser}}
	r := us.defaultRules()
	us.memory.Store(int64(r.cost))
	us.bound.Store(MaxMemory)
	us.Default.rules.Store(r)
	us.byName = map[string]*User{DefaultUser: us.Default}
	return us
}

// defaultRules returns the initial rules of the user default: all permissions, and no password.
func (us *Users) defaultRules() *Rules {
	r, err := newRules(us.vocabulary, true).Apply(us.vocabulary, []string{"on", "nopass", "+@all", "~*", "&*"}, true)
	if err != nil {
		panic(err) // only a mistake in this package can cause this error
	}
	return r
}

// SetAllChannels sets whether new users may use all channels (acl-pubsub-default) or none.
func (us *Users) SetAllChannels(all bool) { us.allChannels.Store(all) }

// SetBound sets the maximum memory, in bytes, up to which Set lets users grow; at most [MaxMemory].
// Users of files may take more, because the operator has written the files.
func (us *Users) SetBound(bytes int64) { us.bound.Store(min(bytes, MaxMemory)) }

// Memory returns about how many bytes of memory all users take.
func (us *Users) Memory() int64 { return us.memory.Load() }

// Find returns the user called name, or nil.
func (us *Users) Find(name string) *User {
	us.mu.RLock()
	defer us.mu.RUnlock()
	return us.byName[name]
}

// all returns all users, sorted by name.
func (us *Users) all() []*User {
	us.mu.RLock()
	all := slices.Collect(maps.Values(us.byName))
	us.mu.RUnlock()
	slices.SortFunc(all, func(a, b *User) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Names returns the names of all users, sorted.
func (us *Users) Names() []string {
	all := us.all()
	names := make([]string, len(all))
	for i, u := range all {
		names[i] = u.Name
	}
	return names
}

// List returns all users as lines of an ACL file, sorted by name.
func (us *Users) List() []string {
	_, lines := us.Lines()
	return slices.Collect(lines)
}

// Lines returns the number of users, and an iterator over the lines that List returns.
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

// Set applies words, the rules of ACL SETUSER, to the user called name: all of them or, if it
// returns an error, none. It creates the user if there is none. before are the rules that the user
// had; nil for a new user.
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

// tooLong reports whether the text of the rules is longer than MaxRules.
func (r *Rules) tooLong() bool { return r.cost > MaxRules/2 && len(r.Text()) > MaxRules }

// Check returns the error for the first wrong rule in words, as if they were for a new user; nil if
// there is none. It checks none of the bounds on the memory of users.
func (us *Users) Check(words []string) error {
	_, err := newRules(us.vocabulary, false).Apply(us.vocabulary, words, false)
	return err
}

// Delete deletes the users called names, except default, and returns those that existed. Clients
// cannot log in as these users any more. The caller has to close their clients.
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

// end removes all permissions of u, which was deleted. Otherwise a command that runs without a
// connection could still use them after the connections of u are closed.
func (us *Users) end(u *User) { u.rules.Store(newRules(us.vocabulary, false).seal()) }

// Closings returns the number of changes because of which clients of users had to be closed. Code
// that logs a client in reads it before and after the login: see [Users.Delete].
func (us *Users) Closings() int64 { return us.closings.Load() }

// noRules stands for the rules of an unknown user, so that a login of such a user takes about the
// same time, and for those of a user whose line in a file has a fault.
var noRules = new(Rules)

// Authenticate returns the user called name if password is right and the user is on. An unknown
// name, a user that is off and a wrong password take about the same time.
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

// ByName returns the user called name if the user is on. It checks no password: the client was
// authenticated in another way, for example by a certificate.
func (us *Users) ByName(name string) (u *User, ok bool) {
	if u = us.Find(name); u == nil || !u.Rules().On {
		return nil, false
	}
	return u, true
}

// NeedsLogin reports whether a client has to log in before it may run commands: the user default
// needs a password or is off.
func (us *Users) NeedsLogin() bool {
	r := us.Default.Rules()
	return !r.NoPass || !r.On
}

// AnyUsable reports whether there is a user that can log in and may run a command. byCertificate
// says that certificates log users in, so that these need no password.
func (us *Users) AnyUsable(byCertificate bool) bool {
	return slices.ContainsFunc(us.all(), func(u *User) bool {
		r := u.Rules()
		return r.On && (r.NoPass || len(r.passwords) > 0 || byCertificate) && r.mayRun()
	})
}

// withPassword returns a copy of r with password as the only password; if password is "", the user
// needs none.
func (r *Rules) withPassword(password string) *Rules {
	next := r.clone()
	next.NoPass, next.passwords = password == "", nil
	if password != "" {
		next.passwords = []digest{sha256.Sum256([]byte(password))}
	}
	return next.seal()
}

// SetPassword makes password the only password of the user default (requirepass); if password is
// "", default needs none.
func (us *Users) SetPassword(password string) {
	us.change.Lock()
	defer us.change.Unlock()
	before := us.Default.Rules()
	next := before.withPassword(password)
	us.memory.Add(int64(next.cost - before.cost))
	us.Default.rules.Store(next)
}
