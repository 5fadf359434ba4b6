package admin

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/cellserver/cellserver/acl"
)

// Config has the handlers of an admin port and the rules for access to them.
type Config struct {
	// Users are the users that may log in, and May reports whether a user may call a command.
	// Both are required.
	Users *acl.Users
	May   func(u *acl.User, command string) bool
	// Protected reports whether clients on other machines need a password, even as a user that
	// needs none; nil means that they do not.
	Protected func() bool
	// Logins bounds how fast passwords can be guessed; nil does not.
	Logins Logins

	// Healthy and Ready return "", or in a few words why the server is not. nil is always "".
	// The context ends when the answer is due.
	Healthy, Ready func(ctx context.Context) string

	// Metrics answers /metrics, API all paths below /api/v1/, and Page everything else. A nil
	// handler does not exist. The user of a request is in its context: see [User].
	Metrics, API, Page http.Handler
	// AnonymousMetrics serves the metrics without a login, and Pprof serves /debug/pprof/ to
	// users that may call DEBUG.
	AnonymousMetrics, Pprof bool
	// Hosts are names by which the port may be asked for, beside addresses and localhost;
	// "*" is every name.
	Hosts []string

	// TLS encrypts the port; nil does not.
	TLS *tls.Config
	// Log receives messages for operators; nil discards them.
	Log *slog.Logger
	// MaxConnections is how many connections may have requests at once, beside those of probes; 0 is
	// [DefaultMaxConnections].
	MaxConnections int
}

// Logins counts and slows down attempts to log in. Any goroutine may call it.
type Logins interface {
	// Attempt returns the time after which a login from the address may be answered, or that it
	// is refused, because too many have failed. For an attempt that is not refused, judged is
	// called with its outcome, unless the request is abandoned.
	Attempt(user, address string) (wait time.Duration, refused bool, judged func(u *acl.User, ok bool))
}

// Bounds of what a client of the port can take.
const (
	// DefaultMaxConnections is how many connections have requests at once: a few dashboards need a
	// handful.
	DefaultMaxConnections = 64
	// ProbeConnections is how many more may be open, so that /healthz and /readyz are answered while
	// the others are full of clients that do not read their answers.
	ProbeConnections = 16
	// MaxHeader is the longest header of a request, and MaxBody the longest body, in bytes.
	MaxHeader = 16 << 10
	MaxBody   = 64 << 10
)
