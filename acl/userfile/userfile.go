// Package userfile reads and writes the file of the option aclfile.
//
// The file has the users of a server in the format of Redis, one line for each user. A [File] is
// read and replaced as a whole. Its methods may wait for the file system, so no event loop may call
// them.
package userfile

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/optionfile"
)

// File is the file of the option aclfile, with the users of a server. It implements [env.UserFile].
type File struct{ path string }

// At returns the File at path, which need not exist. It returns nil if path is "", so that an
// option without a value means that there is no file.
func At(path string) *File {
	if path == "" {
		return nil
	}
	return &File{path}
}

// Parse reads the file and returns the users in it. users has the commands and the limits by which
// the file is checked; Parse does not change it. Parse may take up to [optionfile.Timeout]. The
// error lists the faults of the file, or says why it cannot be read.
func (f *File) Parse(users *acl.Users) (*acl.Parsed, error) {
	content, err := optionfile.Read(f.path, acl.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("reading the users: %w", err)
	}
	return users.ParseFile(f.path, content)
}

// maxLoadFaults is the maximum number of bytes in the reply of ACL LOAD that describe faults.
const maxLoadFaults = 8 << 10

// Load implements [env.UserFile]. It replaces users by the users in the file, and returns those
// that were deleted or have other rules now. If the file has faults, users does not change, and the
// error lists the faults in the form of Redis.
func (f *File) Load(users *acl.Users) (changed []*acl.User, err error) {
	parsed, err := f.Parse(users)
	if err != nil {
		return nil, fmt.Errorf("%s. WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
			acl.FaultLine(err, ". ", maxLoadFaults))
	}
	return users.Replace(parsed), nil
}

// Save implements [env.UserFile]. It replaces the file by one that only its owner may read, since
// it contains digests of passwords.
func (f *File) Save(users *acl.Users) error {
	path, content := f.path, []byte(strings.Join(users.List(), "\n")+"\n")
	return optionfile.Write(path, func() error { return optionfile.Replace(path, content, 0o600) })
}
