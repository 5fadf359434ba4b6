package server

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/stats"
)

// clientKinds records the names and libraries that clients report: a new version of a library may
// explain other changes. Only one goroutine uses it.
type clientKinds struct {
	known  map[clientKind]bool
	libs   map[string]clientKind // the last kind with each name
	looks  int
	tokens int // how many changes may be recorded now
}

// clientKind is a client name, a library and its version.
type clientKind struct{ name, lib, version string }

const (
	// lookEvery is the number of seconds between two looks. firstLooks is the number of looks after
	// a start during which clients may reconnect without being new.
	lookEvery  = 5
	firstLooks = 12
	// maxKinds bounds the known kinds. maxTokens bounds how many changes are recorded at once; each
	// look adds a token.
	maxKinds  = 1024
	maxTokens = 5
)

// look records kinds of clients that were not known before.
func (k *clientKinds) look(e *session.Engine) {
	k.looks++
	if k.looks%lookEvery != 0 {
		return
	}
	if k.known == nil {
		k.known, k.libs = make(map[clientKind]bool), make(map[string]clientKind)
	}
	k.tokens = min(k.tokens+1, maxTokens)
	fresh := make(map[clientKind]int)
	for _, c := range e.Clients() {
		is := c.Identity()
		kind := clientKind{is.Name, is.LibName, is.LibVer}
		if kind != (clientKind{}) && !k.known[kind] {
			fresh[kind]++
		}
	}
	for kind, n := range fresh {
		if len(k.known) >= maxKinds {
			clear(k.known)
			clear(k.libs)
		}
		before, had := k.libs[kind.name]
		k.known[kind], k.libs[kind.name] = true, kind
		if k.looks <= firstLooks*lookEvery && !had || k.tokens == 0 {
			continue
		}
		k.tokens--
		e.Changes.Add(stats.Change{At: e.CivilMillis(), Kind: "client", Text: kind.text(before, had), By: fmt.Sprintf("%d clients", n)})
	}
}

// text describes the new kind.
func (kind clientKind) text(before clientKind, had bool) string {
	name, lib := kind.name, strings.TrimSpace(kind.lib+" "+kind.version)
	if name == "" {
		name = "clients without a name"
	}
	switch {
	case lib == "":
		return "New clients: " + name
	case had && strings.TrimSpace(before.lib+" "+before.version) != "":
		return "New library: " + name + " now calls with " + lib + ", was " + strings.TrimSpace(before.lib+" "+before.version)
	}
	return "New clients: " + name + " with " + lib
}
