package server

import (
	"errors"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/acl/userfile"
	"github.com/cellserver/cellserver/config"
)

// prepareUsers checks the users of the configuration next, and returns a function apply that
// replaces the users of the server by them. apply stores the users that were deleted or have other
// permissions in s.reloading.changed, so that reloadFor closes their clients. It logs a warning if
// no user can log in and run commands. apply is nil if neither configuration defines users.
func (s *Server) prepareUsers(next *config.Config) (apply func(), err error) {
	if !next.DefinesUsers() && !s.config.DefinesUsers() {
		return nil, nil
	}
	users := s.engine.Users
	parsed, err := checkedUsers(next, users)
	if err != nil {
		return nil, err
	}
	password := next.Value("requirepass")
	return func() {
		s.reloading.changed = users.Replace(parsed)
		s.engine.KeepUsers(password)
		if !users.AnyUsable(next.Value("tls-auth-clients-user") != "off") {
			s.log.Warn("no user can log in and run commands: each is off, has no password, or may call nothing")
		}
	}, nil
}

// checkedUsers returns the users of the configuration. It returns an error if the user default has
// full access without a password, other machines can reach an address of bind, and protected-mode
// is yes.
func checkedUsers(c *config.Config, users *acl.Users) (*acl.Parsed, error) {
	parsed, err := parseUsers(c, users)
	if err == nil && parsed.Rules(acl.DefaultUser).Open() {
		err = c.RefuseReachable()
	}
	return parsed, err
}

// parseUsers returns the users of the configuration: the users of the file aclfile, or else the
// users of its lines "user". Both together are an error. If the lines do not define the user
// default, it gets the password of requirepass. As in Redis, requirepass has no effect on the users
// of aclfile.
func parseUsers(c *config.Config, users *acl.Users) (parsed *acl.Parsed, err error) {
	file, password := userfile.At(c.Path("aclfile")), c.Value("requirepass")
	switch {
	case file == nil:
		parsed, err = users.ParseLines(c.Users())
	case len(c.Users()) > 0:
		err = errors.New(`lines "user" and the option "aclfile" exclude each other: put all users into the file`)
	default:
		password = ""
		parsed, err = file.Parse(users)
	}
	if err == nil {
		users.AddDefault(parsed, password)
	}
	return parsed, err
}

// closeClientsOf closes the connections of all clients that have one of the given users, except for
// the client with the ID but. It reports whether that client has one of the users.
func (s *Server) closeClientsOf(users []*acl.User, but int64) (is bool) {
	if len(users) == 0 {
		return false
	}
	of := make(map[*acl.User]bool, len(users))
	for _, u := range users {
		of[u] = true
	}
	for _, cl := range s.engine.Clients() {
		switch {
		case !of[cl.User.Load()]:
		case cl.ID == but:
			is = true
		default:
			cl.Kill()
		}
	}
	return is
}
