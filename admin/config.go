package admin

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/cellserver/cellserver/acl"
)

// Config is what an admin port serves, and to whom.
type Config struct {
	// Users are those who may log in, and May reports whether one may call a command. Both
	// are needed.
	Users *acl.Users
	May   func(u *acl.User, command string) bool
	// Protected reports whether clients of other machines have to give a password, even for a
	// user who needs none; nil never does.
	Protected func() bool
	// Logins bounds how fast passwords can be guessed; nil does not.
	Logins Logins

	// Healthy and Ready return "", or in a few words why the server is not. nil is always "".
	// The context ends when the answer is due.
	Healthy, Ready func(ctx context.Context) string

	// Metrics answers /metrics, API all below /api/v1/, and Page everything else. Those that
	// are nil do not exist. The user who asks is in the context of the request: see [User].
	Metrics, API, Page http.Handler
	// AnonymousMetrics shows the metrics to everybody, and Pprof serves /debug/pprof/ to
	// users who may call DEBUG.
	AnonymousMetrics, Pprof bool
	// Hosts are names by which the port may be asked for, beside addresses and localhost;
	// "*" is every name.
	Hosts []string

	// TLS encrypts the port; nil does not.
	TLS *tls.Config
	// Log receives what an operator should know; nil is nobody.
	Log *slog.Logger
	// MaxConnections is how many connections may have requests at once, beside those of probes; 0 is
	// [DefaultMaxConnections].
	MaxConnections int
}

// Logins counts and slows down attempts to log in. Any goroutine may call it.
type Logins interface {
	// Attempt says after how long an attempt of the address may be answered by whether the password
	// is right, or that it is refused, since too many have failed. One that is not refused is told
	// how it ended by a call of judged, unless it is given up.
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
