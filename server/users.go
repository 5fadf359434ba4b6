package server

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/optionfile"
)

// prepareUsers checks the users of a configuration, and returns what puts them in force. Users
// who are gone or may do something else are noted in reloading, for their clients to be closed.
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

// checkedUsers reads the users of the configuration, and refuses those who let other machines
// in without a password.
func checkedUsers(c *config.Config, users *acl.Users) (*acl.Parsed, error) {
	parsed, err := parseUsers(c, users)
	if err == nil && parsed.Rules(acl.DefaultUser).Open() {
		err = c.RefuseReachable()
	}
	return parsed, err
}

// parseUsers reads the users of the configuration. Without a word about default it needs
// the password of requirepass, but not beside a file, as in Redis.
func parseUsers(c *config.Config, users *acl.Users) (parsed *acl.Parsed, err error) {
	file, password := userFileOf(c), c.Value("requirepass")
	switch {
	case file == nil:
		parsed, err = users.ParseLines(c.Users())
	case len(c.Users()) > 0:
		err = errors.New(`lines "user" and the option "aclfile" exclude each other: put all users into the file`)
	default:
		password = ""
		parsed, err = file.parse(users)
	}
	if err == nil {
		users.AddDefault(parsed, password)
	}
	return parsed, err
}

// closeClientsOf closes the clients of users but for one, and reports whether that is one of
// them.
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

// userFile is the file of the option aclfile. It implements [command.UserFile].
type userFile string

// userFileOf returns the file of users, nil without one.
func userFileOf(c *config.Config) *userFile {
	path := userFile(c.Path("aclfile"))
	if path == "" {
		return nil
	}
	return &path
}

func (f *userFile) parse(users *acl.Users) (*acl.Parsed, error) {
	content, err := optionfile.Read(string(*f), acl.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("reading the users: %w", err)
	}
	return users.ParseFile(string(*f), content)
}

// maxLoadFaults is how many bytes of faults the reply of ACL LOAD has.
const maxLoadFaults = 8 << 10

// Load implements command.UserFile.
func (f *userFile) Load(users *acl.Users) (changed []*acl.User, err error) {
	parsed, err := f.parse(users)
	if err != nil {
		return nil, fmt.Errorf("%s. WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
			acl.FaultLine(err, ". ", maxLoadFaults))
	}
	return users.Replace(parsed), nil
}

// Save implements command.UserFile. Others cannot read the file, since it has digests of
// passwords in it.
func (f *userFile) Save(users *acl.Users) error {
	path, content := string(*f), []byte(strings.Join(users.List(), "\n")+"\n")
	return optionfile.Write(path, func() error { return replaceFile(path, content, 0o600) })
}
