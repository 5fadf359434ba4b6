// Package userfile reads and writes the file of the option aclfile.
//
// The file has the users of a server in the format of Redis, a line for each. A [File] is read and
// replaced as a whole. Each of its methods may wait for the file system, so no event loop may call
// them.
package userfile

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/optionfile"
)

// File is a file with the users of a server. It implements [env.UserFile].
type File struct{ path string }

// At returns the file at path. It is nil if path is "", as that of an option without a value.
func At(path string) *File {
	if path == "" {
		return nil
	}
	return &File{path}
}

// Parse reads the file and returns the users in it. users has the commands and the limits for users.
// Parse may take up to [optionfile.Timeout].
func (f *File) Parse(users *acl.Users) (*acl.Parsed, error) {
	content, err := optionfile.Read(f.path, acl.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("reading the users: %w", err)
	}
	return users.ParseFile(f.path, content)
}

// maxLoadFaults is the maximum number of bytes for faults in the reply of ACL LOAD.
const maxLoadFaults = 8 << 10

// Load implements [env.UserFile].
func (f *File) Load(users *acl.Users) (changed []*acl.User, err error) {
	parsed, err := f.Parse(users)
	if err != nil {
		return nil, fmt.Errorf("%s. WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
			acl.FaultLine(err, ". ", maxLoadFaults))
	}
	return users.Replace(parsed), nil
}

// Save implements [env.UserFile]. Other users of the machine cannot read the file, since it
// contains digests of passwords.
func (f *File) Save(users *acl.Users) error {
	path, content := f.path, []byte(strings.Join(users.List(), "\n")+"\n")
	return optionfile.Write(path, func() error { return optionfile.Replace(path, content, 0o600) })
}
