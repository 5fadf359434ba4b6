// Package process reads facts about this process from the operating system and Go's runtime.
//
// These are its memory and processor time, its limit of open files, which [RaiseFiles] raises, and
// the revision of its program. A [Heap] bounds the memory of Go's runtime. The package does not
// depend on the server.
package process

import (
	"regexp"
	"runtime/debug"
	"sync"
)

// Revision returns the commit from which this program was compiled, and whether its source had
// uncommitted changes. The commit is "" if the build does not record it, as in tests. Revision
// reads the build information only once.
func Revision() (commit string, modified bool) { return revision() }

var revision = sync.OnceValues(func() (commit string, modified bool) {
	build, _ := debug.ReadBuildInfo()
	return revisionOf(build)
})

// pseudoVersion matches a pseudo-version, which is the version of a commit of a module without a
// tag. It captures the twelve digits of the commit.
var pseudoVersion = regexp.MustCompile(`-(?:0\.)?[0-9]{14}-([0-9a-f]{12})(?:\+|$)`)

// revisionOf returns the commit of build, and whether the source had uncommitted changes. A build
// in a checkout records the commit as a setting. A build by `go install module@version` has it as a
// part of the version.
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

// ShortRevision returns the first eight digits of the commit, and whether the source had
// uncommitted changes. An unknown commit is eight zeros, as in INFO of Redis.
func ShortRevision() (commit string, modified bool) {
	const digits = 8
	if commit, modified = Revision(); len(commit) < digits {
		return "00000000", modified
	}
	return commit[:digits], modified
}
