package report

import (
	"net/http"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/stats"
)

// Source is what a [Reporter] asks of the server. Any goroutine may call it.
type Source interface {
	// Identity names the process. Actions reports whether all users may call [Source.Execute].
	Identity() Server
	Actions() bool
	Databases() int
	// Denied and Called are the keys that are denied and called most.
	Denied() stats.SeenKeys
	Called() stats.SeenKeys
	// GroupOf is the name of the group of a key.
	GroupOf(key string) string
	// Policy returns which policy key has the state of, and the key that RL.USE is called with; false if
	// it has not that of one.
	Policy(key string) (name, of string, is bool)
	// Changes returns those behind an ID, the oldest first.
	Changes(since int64) []stats.Change
	// Caller is a client that is connected. Clients are some of them, and SlowLog the newest
	// entries of SLOWLOG.
	Caller(id int64) (Caller, bool)
	Clients(most int) []ClientLine
	SlowLog(most int) []SlowCall
	// May reports whether a user may call a command, whatever the key.
	May(u *acl.User, command string) bool
	// Execute runs a command as that user, and returns the reply in RESP3. from is where the
	// request came from.
	Execute(u *acl.User, from string, db int, args [][]byte) ([]byte, error)
}

// Failed is the error of a command that has no reply to show: the status of the answer, and a
// sentence for people.
type Failed struct {
	Status int
	Text   string
}

// Error implements [error].
func (f *Failed) Error() string { return f.Text }

// Errors of [Source.Execute]. Two of them say that the command may have run.
var (
	ErrWaits           = &Failed{http.StatusBadRequest, "the command was not run: it would wait for other clients; send it by redis-cli"}
	ErrNeedsConnection = &Failed{http.StatusBadRequest, "the command was not run: it is about the connection that sends it, and each request here is a connection of its own; send it by redis-cli"}
	ErrNoReply         = &Failed{http.StatusUnprocessableEntity, "the command has run and has no reply"}
	ErrReplyTooLong    = &Failed{http.StatusUnprocessableEntity, "the command has run, but its reply is longer than 1 MiB; send it by redis-cli"}
	ErrStopping        = &Failed{http.StatusServiceUnavailable, "the server is stopping; the command may not have run"}
	ErrTimeout         = &Failed{http.StatusGatewayTimeout, "the command has not answered within 10 s; it may still run"}
)

// errDepth is the error for a reply that is nested too deeply to be shown on a page.
var errDepth = &Failed{http.StatusUnprocessableEntity, "the command has run, but its reply is nested too deeply to be shown; send it by redis-cli"}
