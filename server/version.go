package server

import "github.com/cellserver/cellserver/process"

// Version is the version of cellserver. Clients see [command.RedisVersion] as the version of Redis.
const Version = "0.1.0"

// VersionText returns the version and, if it is known, the revision, such as "0.1.0 (60cbce0b,
// modified)".
func VersionText() string {
	if commit, _ := process.Revision(); commit == "" {
		return Version
	}
	text, modified := process.ShortRevision()
	if modified {
		text += ", modified"
	}
	return Version + " (" + text + ")"
}
