package server

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/stats"
)

// clientKinds follows as what clients show themselves: a new version of a library explains much.
// One goroutine uses it.
type clientKinds struct {
	known  map[clientKind]bool
	libs   map[string]clientKind // the last kind of each name
	looks  int
	tokens int // how many changes may be noted
}

// clientKind is a name, a library and its version.
type clientKind struct{ name, lib, version string }

const (
	// lookEvery is how many seconds pass between two looks, and firstLooks how many looks a
	// start has for clients to come back.
	lookEvery  = 5
	firstLooks = 12
	// maxKinds bounds what is known, and maxTokens how many changes are noted at once; there is
	// another one for each look.
	maxKinds  = 1024
	maxTokens = 5
)

// look notes kinds of clients that were not there before.
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

// text says what is new about a kind.
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
