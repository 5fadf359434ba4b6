package report

import (
	"fmt"
	"iter"
	"strings"
)

// ClientKinds finds names and libraries that clients report for the first time, for RL.CHANGES, since
// a new version of a library may explain other changes. It is for one goroutine. The zero value
// knows no kind.
type ClientKinds struct {
	known  map[ClientKind]bool
	libs   map[string]ClientKind // the latest kind of the clients with each name
	looks  int
	tokens int // number of changes that may be recorded now
}

// ClientKind has the name of a client, and the name and the version of its library, as the client
// has reported them.
type ClientKind struct{ Name, Lib, Version string }

const (
	// lookEvery is the number of calls of Look, one a second, between two that compare the clients.
	// firstLooks is the number of such comparisons after a start during which a client with a new
	// name is not recorded, since clients reconnect then.
	lookEvery  = 5
	firstLooks = 12
	// maxClientKinds is the maximum number of known kinds; when it is reached, all are forgotten.
	// maxKindTokens is the maximum number of changes that are recorded at once; each comparison adds a
	// token.
	maxClientKinds = 1024
	maxKindTokens  = 5
)

// Look compares the kinds of all clients with those that were known before. It calls changed for a
// new kind, with a sentence and with the number of its clients in words. It leaves out clients with
// a new name shortly after the start, and further kinds if there are many new ones. Look must be
// called once a second. It ranges over clients in every lookEvery-th call.
func (k *ClientKinds) Look(clients iter.Seq[ClientKind], changed func(text, by string)) {
	k.looks++
	if k.looks%lookEvery != 0 {
		return
	}
	if k.known == nil {
		k.known, k.libs = make(map[ClientKind]bool), make(map[string]ClientKind)
	}
	k.tokens = min(k.tokens+1, maxKindTokens)
	fresh := make(map[ClientKind]int)
	for kind := range clients {
		if kind != (ClientKind{}) && !k.known[kind] {
			fresh[kind]++
		}
	}
	for kind, n := range fresh {
		if len(k.known) >= maxClientKinds {
			clear(k.known)
			clear(k.libs)
		}
		before, had := k.libs[kind.Name]
		k.known[kind], k.libs[kind.Name] = true, kind
		if k.looks <= firstLooks*lookEvery && !had || k.tokens == 0 {
			continue
		}
		k.tokens--
		changed(kind.text(before, had), fmt.Sprintf("%d clients", n))
	}
}

// text describes the new kind in a sentence. before is the kind that clients of the same name had
// before; had is false if there was none.
func (kind ClientKind) text(before ClientKind, had bool) string {
	name, lib := kind.Name, strings.TrimSpace(kind.Lib+" "+kind.Version)
	if name == "" {
		name = "clients without a name"
	}
	switch {
	case lib == "":
		return "New clients: " + name
	case had && strings.TrimSpace(before.Lib+" "+before.Version) != "":
		return "New library: " + name + " now calls with " + lib + ", was " + strings.TrimSpace(before.Lib+" "+before.Version)
	}
	return "New clients: " + name + " with " + lib
}
