package server

import (
	"regexp"
	"runtime/debug"
	"sync"
)

// revision returns the commit from which this program was compiled, and whether its source had
// uncommitted changes. The commit is "" if the build does not record it, as in tests. revision
// reads the build information only once.
var revision = sync.OnceValues(func() (commit string, modified bool) {
	build, _ := debug.ReadBuildInfo()
	return revisionOf(build)
})

// pseudoVersion matches the version of a module between two tags, and captures the twelve digits of
// the commit in it.
var pseudoVersion = regexp.MustCompile(`-(?:0\.)?[0-9]{14}-([0-9a-f]{12})(?:\+|$)`)

// revisionOf returns the commit of build, and whether the source had uncommitted changes. A build
// of a checkout records the commit as a setting, and one by `go install module@version` as a part
// of the version.
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

// shortRevision returns the first eight digits of the commit, and whether the source had
// uncommitted changes. An unknown commit is eight zeros, as in INFO of Redis.
func shortRevision() (commit string, modified bool) {
	const digits = 8
	if commit, modified = revision(); len(commit) < digits {
		return "00000000", modified
	}
	return commit[:digits], modified
}

// VersionText returns the version and, if it is known, the revision, such as "0.1.0 (60cbce0b,
// modified)".
func VersionText() string {
	if commit, _ := revision(); commit == "" {
		return Version
	}
	text, modified := shortRevision()
	if modified {
		text += ", modified"
	}
	return Version + " (" + text + ")"
}
