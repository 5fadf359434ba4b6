package connection

import (
	"bytes"
	"time"

	"github.com/cellserver/cellserver/acl"
	"github.com/cellserver/cellserver/arg"
	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/resp"
)

// filter selects clients for CLIENT LIST and CLIENT KILL: those that match all its parts. In Redis
// 7.2, CLIENT LIST has only the parts TYPE and ID; later versions of Valkey have the others, too.
// MAXAGE is in Redis 7.4 and Valkey 8.0.
type filter struct {
	ids         map[int64]bool // the IDs to match; nil matches any ID
	addr, laddr []byte         // the addresses to match; nil matches any address
	typed       func(*command.Client) bool
	user        *acl.User
	minAge      time.Duration
	skipMe      bool
}

// filterWords are the words that begin a part of a filter.
var filterWords = []string{"ID", "TYPE", "ADDR", "LADDR", "USER", "SKIPME", "MAXAGE"}

func isFilterWord(word []byte) bool {
	for _, known := range filterWords {
		if arg.IsWord(word, known) {
			return true
		}
	}
	return false
}

// parseFilter parses args, pairs of a word and its value. list says that the command is CLIENT
// LIST. Then an ID may be followed by more IDs, and the caller is included unless SKIPME is YES.
// For CLIENT KILL the caller is excluded unless SKIPME is NO. The error is "" on success.
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

// parseIDs parses args after the word ID: one ID or, for CLIENT LIST, all IDs up to the next part.
// used is the number of arguments that belong to the part, including the word ID.
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

// parsePair parses a part other than ID: its name word and its value. The error is "" on success.
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

// maxAge is an age in seconds that no client reaches: 100 years. It keeps the age from overflowing
// a time.Duration.
const maxAge = 100 * 366 * 24 * 3600

// matches reports whether the filter selects s at the instant now. self is the ID of the caller.
func (f *filter) matches(s *command.Client, self int64, now limit.Instant) bool {
	return (f.ids == nil || f.ids[s.ID]) &&
		(f.addr == nil || string(f.addr) == s.Addr()) &&
		(f.laddr == nil || string(f.laddr) == s.Laddr()) &&
		(f.typed == nil || f.typed(s)) &&
		(f.user == nil || f.user == s.User.Load()) &&
		(f.minAge == 0 || now.Sub(s.Created) >= f.minAge) &&
		(!f.skipMe || s.ID != self)
}

// clientType returns a function that reports whether a client has the type that b names. A client
// that gets a replication stream is a replica, and the client from which this server replicates is
// the master. Other clients with a subscription are of the type pubsub, and all others are normal.
// The error is "" on success.
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
