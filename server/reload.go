package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/optionfile"
)

// reloading has the mutex that is locked while the configuration is read again, so that only one
// reload runs at a time.
type reloading struct {
	sync.Mutex
	changed []*acl.User // the users whose clients have to be closed after the reload
}

// start calls prepare with the present configuration and applies the result. It also registers
// prepare for every reload.
func (s *Server) start(prepare config.Prepare) error {
	apply, err := prepare(s.config)
	if err != nil {
		return err
	}
	if apply != nil {
		apply()
	}
	s.config.OnReload(prepare)
	return nil
}

// Reload reads the configuration again, with the files that it names, and applies all of it. If
// there is a fault, it applies nothing, logs every fault and returns an error. by names what
// requested the reload, for RL.CHANGES. Any goroutine may call Reload.
func (s *Server) Reload(by string) error {
	_, err := s.reloadFor(by, 0)
	return err
}

// reloadFor implements Reload on behalf of the client with the ID client; 0 stands for no client.
// It closes the clients of users that were deleted or have other permissions now, except for this
// client: if it is one of them, closes is true, and the caller has to close it after the reply.
func (s *Server) reloadFor(by string, client int64) (closes bool, err error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.reloading.changed = nil
	if s.persistence.Loaded() { // while the server is loading, the service manager must not get the message that it is ready
		s.tellManager("RELOADING=1\nSTATUS=Reading the configuration again\n")
		defer s.tellManager(ready)
	}
	err = s.config.Reload()
	if err == nil {
		closes = s.closeClientsOf(s.reloading.changed, client)
		s.engine.Changed("reload", "the configuration and its files were read again", by)
		s.log.Info("the configuration was reloaded", "file", s.config.File())
		return closes, nil
	}
	faults := config.Faults(err)
	s.log.Warn("the configuration was not reloaded, nothing has changed", "faults", len(faults))
	for len(faults) > maxFaultLines {
		last := len(faults) - 1
		faults = append(faults[:last-1], fmt.Errorf("%w; %w", faults[last-1], faults[last]))
	}
	for _, fault := range faults {
		s.log.Warn("fault of the configuration", "error", fault)
	}
	return false, err
}

// Rewrite writes the present settings and users into the file with which the server was started,
// which keeps its permissions. It logs the result.
func (s *Server) Rewrite() error {
	err := s.config.Rewrite(s.userLines, func(path string, content []byte) error {
		return optionfile.Write(path, func() error {
			mode := os.FileMode(0o600) // the mode for a file that may contain a password
			if target, err := filepath.EvalSymlinks(path); err == nil {
				path = target
			}
			if info, err := os.Stat(path); err == nil {
				mode = info.Mode().Perm()
			}
			return optionfile.Replace(path, content, mode)
		})
	})
	if err != nil {
		s.log.Warn("the configuration was not rewritten", "error", err)
		return err
	}
	s.log.Info("the configuration was rewritten", "file", s.config.File())
	return nil
}

// userLines returns the lines "user" that Rewrite has to write. has are the lines of the
// configuration file and of the files that it includes. The result is nil, which means that the
// lines of the file can stay, if they define the same users as the server has, or if the option
// aclfile stores the users in a file of their own.
func (s *Server) userLines(has []acl.Line) []string {
	if s.config.Value("aclfile") != "" {
		return nil
	}
	users := s.engine.Users
	parsed, err := users.ParseLines(has)
	want := users.List()
	if err == nil {
		users.AddDefault(parsed, s.config.Value("requirepass"))
		if slices.Equal(parsed.List(), want) {
			return nil
		}
	}
	return besideIncluded(users, has, want)
}

// besideIncluded returns the lines that the configuration file itself needs, so that it defines the
// users in want together with the files that it includes. These are the lines of want, except for a
// line that an included file has already, unless the file itself defines that user, too. If an
// included file defines a user that is not in want, the result has a line that removes all
// permissions of the user.
func besideIncluded(users *acl.Users, has []acl.Line, want []string) (lines []string) {
	var included []acl.Line
	own := make(map[string]bool)
	for _, l := range has {
		if l.Included {
			included = append(included, l)
		} else {
			own[l.Words[0]] = true
		}
	}
	parsed, err := users.ParseLines(included)
	if err != nil || len(included) == 0 {
		return want
	}
	wanted := make(map[string]bool)
	for _, line := range want {
		name := acl.SplitWords(line)[1]
		wanted[name] = true
		if own[name] || !slices.Contains(parsed.List(), line) {
			lines = append(lines, line)
		}
	}
	for _, l := range included {
		if name := l.Words[0]; !wanted[name] {
			wanted[name] = true
			lines = append(lines, "user "+name+" off resetpass resetkeys resetchannels -@all")
		}
	}
	if lines == nil {
		lines = []string{} // a nil slice would mean that the lines of the file stay
	}
	return lines
}

// maxFaultLines is the maximum number of lines about faults, since the log passes ten lines of a
// kind at once. Further faults are joined into the last line.
const maxFaultLines = 10
