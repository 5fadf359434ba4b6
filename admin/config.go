package admin

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/front/login"
)

// Config has the handlers of an admin port and the rules for access to them.
type Config struct {
	// Users are the users that may log in. May reports whether a user may call a command. Both are
	// required.
	Users *acl.Users
	May   func(u *acl.User, command string) bool
	// Protected reports whether a user without a password may log in only from this machine; nil
	// means that such a user may log in from anywhere.
	Protected func() bool
	// Logins limits the rate at which passwords can be guessed; nil means no limit.
	Logins login.Limiter

	// Healthy and Ready return "" if the server is healthy or ready, and otherwise the reason in a
	// few words. A nil function has the same effect as one that returns "". The context ends when
	// the reply is due.
	Healthy, Ready func(ctx context.Context) string

	// Metrics serves /metrics, API all paths below /api/v1/, and Page all other paths. If a handler
	// is nil, its paths do not exist. [User] returns the user of a request from its context.
	Metrics, API, Page http.Handler
	// AnonymousMetrics permits requests for the metrics without a login. Pprof serves /debug/pprof/
	// to users that may call DEBUG.
	AnonymousMetrics, Pprof bool
	// Hosts are the host names that requests may name, besides IP addresses and localhost; "*"
	// permits every name.
	Hosts []string

	// TLS is the configuration for TLS; nil means that the port does not use TLS.
	TLS *tls.Config
	// Log receives messages for operators; nil discards them.
	Log *slog.Logger
	// MaxConnections is the maximum number of requests at once, without those for /healthz and
	// /readyz; 0 means [DefaultMaxConnections].
	MaxConnections int
}

// These bound what clients of the port can use.
const (
	// DefaultMaxConnections is the default of Config.MaxConnections. It is enough for several
	// dashboards.
	DefaultMaxConnections = 64
	// ProbeConnections is the number of connections that may be open beyond MaxConnections, so that
	// /healthz and /readyz are served while clients that do not read their responses use all
	// others.
	ProbeConnections = 16
	// MaxHeader and MaxBody are the maximum lengths of the header and of the body of a request, in
	// bytes.
	MaxHeader = 16 << 10
	MaxBody   = 64 << 10
)
