package server

import (
	"regexp"
	"runtime/debug"
)

// Revision returns the commit that this program was compiled from, and whether files differed from it.
// It is "" where the build does not say it, such as in tests.
func Revision() (commit string, modified bool) {
	build, _ := debug.ReadBuildInfo()
	return revisionOf(build)
}

// pseudoVersion is the version of a module between two tags, which ends in twelve digits of the commit.
var pseudoVersion = regexp.MustCompile(`-(?:0\.)?[0-9]{14}-([0-9a-f]{12})(?:\+|$)`)

// revisionOf is what a build says: that of a checkout has a stamp, and that of `go install
// module@version` the version of the module.
func revisionOf(build *debug.BuildInfo) (commit string, modified bool) {
	if build == nil {
		return "", false
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if commit == "" {
		if found := pseudoVersion.FindStringSubmatch(build.Main.Version); found != nil {
			commit = found[1]
		}
	}
	return commit, modified
}

// shortRevision returns the first eight digits of the commit; eight zeros stand for one that is not known, as
// in INFO of Redis.
func shortRevision() string {
	if commit, _ := Revision(); len(commit) >= shortCommit {
		return commit[:shortCommit]
	}
	return "00000000"
}

const shortCommit = 8

// VersionText is the version with the revision, if that is known, such as "0.1.0 (60cbce0b, modified)".
func VersionText() string {
	commit, modified := Revision()
	switch {
	case commit == "":
		return Version
	case modified:
		return Version + " (" + commit[:min(len(commit), shortCommit)] + ", modified)"
	}
	return Version + " (" + commit[:min(len(commit), shortCommit)] + ")"
}
