package report

import (
	"net/http"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/stats"
)

// Source provides information about the server to a [Reporter]. It is safe for concurrent use.
type Source interface {
	// Identity describes the process. Actions reports whether users may call [Source.Execute].
	Identity() Server
	Actions() bool
	Databases() int
	// Denied and Called return the keys that are denied and called most.
	Denied() stats.SeenKeys
	Called() stats.SeenKeys
	// Others returns the other live servers of the store; none without a store. If wait is true, it may wait for the
	// store for a few seconds; otherwise it returns the servers that are known already. The error is the reason why
	// some are missing.
	Others(wait bool) ([]Other, error)
	// GroupOf returns the name of the group of a key.
	GroupOf(key string) string
	// Policy returns the name of the policy whose state is at key, and in of the key that calls of
	// RL.USE name. The result is is false if key does not hold the state of a policy.
	Policy(key string) (name, of string, is bool)
	// Changes returns the changes whose ID is above since, the oldest first.
	Changes(since int64) []stats.Change
	// Caller returns a connected client. Clients returns the connected clients, at most as many as
	// most says. SlowLog returns the newest entries of SLOWLOG.
	Caller(id int64) (Caller, bool)
	Clients(most int) []ClientLine
	SlowLog(most int) []SlowCall
	// May reports whether a user may call a command, regardless of keys.
	May(u *acl.User, command string) bool
	// Execute runs the command args as u in the database db, and returns the reply in RESP3. from
	// is the address of the request. The error is a [*Failed] if there is no reply to show.
	Execute(u *acl.User, from string, db int, args [][]byte) ([]byte, error)
}

// Failed is the error of a command without a reply to show: the HTTP status, and a sentence for
// display.
type Failed struct {
	Status int
	Text   string
}

// Error returns the sentence for display.
func (f *Failed) Error() string { return f.Text }

// These are the errors of [Source.Execute]. After ErrNoReply and ErrReplyTooLong the command has
// run; after ErrStopping and ErrTimeout it may have run.
var (
	ErrWaits           = &Failed{http.StatusBadRequest, "the command was not run: it would wait for other clients; send it by redis-cli"}
	ErrNeedsConnection = &Failed{http.StatusBadRequest, "the command was not run: it is about the connection that sends it, and each request here is a connection of its own; send it by redis-cli"}
	ErrNoReply         = &Failed{http.StatusUnprocessableEntity, "the command has run and has no reply"}
	ErrReplyTooLong    = &Failed{http.StatusUnprocessableEntity, "the command has run, but its reply is longer than 1 MiB; send it by redis-cli"}
	ErrStopping        = &Failed{http.StatusServiceUnavailable, "the server is stopping; the command may not have run"}
	ErrTimeout         = &Failed{http.StatusGatewayTimeout, "the command has not answered within 10 s; it may still run"}
)

// errDepth is the error for a reply that is nested too deeply to be shown.
var errDepth = &Failed{http.StatusUnprocessableEntity, "the command has run, but its reply is nested too deeply to be shown; send it by redis-cli"}
