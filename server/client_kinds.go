package server

import (
	"fmt"
	"strings"

	"github.com/cellserver/cellserver/session"
	"github.com/cellserver/cellserver/stats"
)

// clientKinds records, as entries of RL.CHANGES, names and libraries that clients report for the
// first time, since a new version of a library may explain other changes. It belongs to the
// goroutine that samples.
type clientKinds struct {
	known  map[clientKind]bool
	libs   map[string]clientKind // the kind seen last, by the name of its clients
	looks  int
	tokens int // the number of changes that may be recorded now
}

// clientKind has the name of a client, and the name and the version of its library.
type clientKind struct{ name, lib, version string }

const (
	// lookEvery is the number of calls of look, one a second, between two that compare the clients.
	// firstLooks is the number of such comparisons after a start during which a client with a new
	// name is not recorded, since clients reconnect then.
	lookEvery  = 5
	firstLooks = 12
	// maxKinds is the maximum number of known kinds; when it is reached, all are forgotten.
	// maxTokens is the maximum number of changes that are recorded at once; each comparison adds a
	// token.
	maxKinds  = 1024
	maxTokens = 5
)

// look records the kinds of clients that were not known before. It is called once a second, and
// compares the clients in every lookEvery-th call.
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

// text describes the new kind in a sentence. before is the kind that clients of the same name had
// before; had is false if there was none.
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
