package connection

import (
	"bytes"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/commands/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// filter is which clients CLIENT LIST and CLIENT KILL are about: those that all its parts
// match. CLIENT LIST has only TYPE or ID in Redis 7.2, and the others in later versions of
// Valkey; MAXAGE is of Redis 7.4 and Valkey 8.0.
type filter struct {
	ids         map[int64]bool // nil: of any
	addr, laddr []byte         // nil: any
	typed       func(*command.Client) bool
	user        *acl.User
	minAge      time.Duration
	skipMe      bool
}

// filterWords begin a part of a filter.
var filterWords = []string{"ID", "TYPE", "ADDR", "LADDR", "USER", "SKIPME", "MAXAGE"}

// isFilterWord reports whether a word begins a part of a filter.
func isFilterWord(word []byte) bool {
	for _, known := range filterWords {
		if arg.IsWord(word, known) {
			return true
		}
	}
	return false
}

// parseFilter reads pairs of a word and its value. For CLIENT LIST an ID may be followed by
// more, and the caller is listed too unless SKIPME says no; CLIENT KILL spares the caller
// unless it does.
func parseFilter(args [][]byte, users *acl.Users, list bool) (f filter, err resp.Error) {
	f.skipMe = !list
	for len(args) > 0 {
		if len(args) == 1 {
			return f, resp.ErrSyntax
		}
		used := 2
		if arg.IsWord(args[0], "ID") {
			used, err = f.parseIDs(args[1:], list)
		} else {
			err = f.parsePair(args[0], args[1], users)
		}
		if err != "" {
			return f, err
		}
		args = args[used:]
	}
	return f, ""
}

// parseIDs reads one id, or for CLIENT LIST all up to the next part, and returns how many
// words they take with the one before.
func (f *filter) parseIDs(args [][]byte, list bool) (used int, err resp.Error) {
	if f.ids == nil {
		f.ids = make(map[int64]bool)
	}
	for used < len(args) && (used == 0 || list && !isFilterWord(args[used])) {
		id, ok := arg.Int(args[used])
		switch {
		case list && !ok:
			return 0, "ERR Invalid client ID"
		case !list && (!ok || id < 1):
			return 0, "ERR client-id should be greater than 0"
		}
		f.ids[id] = true
		used++
	}
	return used + 1, ""
}

// parsePair reads any other part.
func (f *filter) parsePair(word, value []byte, users *acl.Users) (err resp.Error) {
	switch {
	case arg.IsWord(word, "TYPE"):
		f.typed, err = clientType(value)
	case arg.IsWord(word, "ADDR"):
		f.addr = bytes.Clone(value)
	case arg.IsWord(word, "LADDR"):
		f.laddr = bytes.Clone(value)
	case arg.IsWord(word, "USER"):
		if f.user = users.Find(string(value)); f.user == nil {
			err = resp.Error("ERR No such user '" + string(command.Echo(value, command.MaxEcho)) + "'")
		}
	case arg.IsWord(word, "MAXAGE"):
		seconds, ok := arg.Int(value)
		switch {
		case !ok:
			err = "ERR maxage is not an integer or out of range"
		case seconds < 1:
			err = "ERR maxage should be greater than 0"
		}
		f.minAge = time.Duration(min(seconds, maxAge)) * time.Second
	case arg.IsWord(word, "SKIPME") && (arg.IsWord(value, "YES") || arg.IsWord(value, "NO")):
		f.skipMe = arg.IsWord(value, "YES")
	default:
		err = resp.ErrSyntax
	}
	return err
}

// maxAge is an age in seconds that no client reaches: a hundred years.
const maxAge = 100 * 366 * 24 * 3600

// matches reports whether a client is among them. self is the id of the caller.
func (f *filter) matches(s *command.Client, self int64, now limit.Instant) bool {
	return (f.ids == nil || f.ids[s.ID]) &&
		(f.addr == nil || string(f.addr) == s.Addr()) &&
		(f.laddr == nil || string(f.laddr) == s.Laddr()) &&
		(f.typed == nil || f.typed(s)) &&
		(f.user == nil || f.user == s.User.Load()) &&
		(f.minAge == 0 || now.Sub(s.Created) >= f.minAge) &&
		(!f.skipMe || s.ID != self)
}

// clientType returns what makes a client one of the type: those that are sent a stream are
// replicas, the one that this server follows is the master, of the others those that have
// subscribed to something are pubsub, and all others normal.
func clientType(b []byte) (matches func(*command.Client) bool, err resp.Error) {
	switch {
	case arg.IsWord(b, "NORMAL"):
		return func(s *command.Client) bool { return !s.Subscribed() && !s.Replica.Load() && !s.Primary }, ""
	case arg.IsWord(b, "PUBSUB"):
		return func(s *command.Client) bool { return s.Subscribed() && !s.Replica.Load() }, ""
	case arg.IsWord(b, "REPLICA"), arg.IsWord(b, "SLAVE"):
		return func(s *command.Client) bool { return s.Replica.Load() }, ""
	case arg.IsWord(b, "MASTER"), arg.IsWord(b, "PRIMARY"):
		return func(s *command.Client) bool { return s.Primary }, ""
	}
	return nil, resp.Error("ERR Unknown client type '" + string(command.Echo(b, command.MaxEcho)) + "'")
}
