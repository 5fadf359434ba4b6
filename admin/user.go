package admin

import (
	"context"
	"net"
	"net/http"

	"github.com/cellserver/cellserver/acl"
)

// userKey is the key of the user in the context of a request.
type userKey struct{}

// User returns the user of a request, or nil if the request needed no login.
func User(ctx context.Context) *acl.User {
	u, _ := ctx.Value(userKey{}).(*acl.User)
	return u
}

// WithUser returns a context whose [User] is u, for tests of handlers.
func WithUser(ctx context.Context, u *acl.User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// login returns the user of the request r. If ok is false, login has replied that a login is required
// or refused. As in the Redis protocol, a request without credentials is one of the user default if
// that user needs no password.
func (s *Server) login(w http.ResponseWriter, r *http.Request) (u *acl.User, ok bool) {
	name, password, said := r.BasicAuth()
	if !said {
		if u = s.Users.Default; s.Users.NeedsLogin() || r.Header.Get("Authorization") != "" {
			askForLogin(w)
			return nil, false
		}
		return u, s.near(w, r, u)
	}
	u, refused := s.door.Login(r.Context(), name, password, address(r))
	switch {
	case refused:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "too many failed logins from this address")
		return nil, false
	case u == nil:
		askForLogin(w)
		return nil, false
	}
	return u, s.near(w, r, u)
}

// near reports whether u may send r from the address of the request. In protected mode a user
// without a password may do that only from this machine. If the result is false, near has sent the
// response.
func (s *Server) near(w http.ResponseWriter, r *http.Request, u *acl.User) bool {
	if s.Protected == nil || !u.Rules().NoPass || !s.Protected() {
		return true
	}
	if ip := net.ParseIP(address(r)); ip != nil && ip.IsLoopback() {
		return true
	}
	refuse(w, http.StatusForbidden, "protected mode is on: only this machine is served while the user needs no password")
	return false
}

func askForLogin(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Basic realm="cellserver", charset="UTF-8"`)
	refuse(w, http.StatusUnauthorized, "a user and a password of the server's ACL are needed")
}

// needs returns a handler that passes a request on to h if its user may call command. It replies to
// any other request itself.
func (s *Server) needs(command string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, ok := s.login(w, r)
		switch {
		case !ok:
		case !s.May(u, command):
			refuse(w, http.StatusForbidden, "the user has no permissions to run the '"+command+"' command")
		default:
			h.ServeHTTP(w, r.WithContext(WithUser(r.Context(), u)))
		}
	})
}

// address returns the address of the client of r, without the port.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
