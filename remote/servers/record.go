package servers

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/remote/records"
)

// Record is the information that a server publishes about itself.
type Record struct {
	// Release is the release of the program, and Address the address of the server for operators.
	Release, Address string
	// Version is the version of the policies that the server has in force.
	Version records.Version
	// File is a hash of the content of the server's policy file; "" without such a file.
	File string
	// Level is the feature level of the program: see [policy.Level].
	Level int
	// Tzdata is the release of the program's calendar data, such as "2025b".
	Tzdata string
	// Started is the civil time at which the server was started.
	Started limit.Instant
}

// stored is the stored form of a record. A later release may add fields, which this one ignores.
type stored struct {
	Release string `json:"release"`
	Address string `json:"address"`
	Version string `json:"policies"`
	File    string `json:"file"`
	Level   *int   `json:"level"` // required, so that other JSON does not count as the record of an old server
	Tzdata  string `json:"tzdata"`
	Started int64  `json:"started"` // civil time in Unix milliseconds
}

// These are the bounds of a record. Lengths are in bytes.
const (
	// maxText is the maximum length of a text in a record.
	maxText = 128
	// maxRecord is the maximum length of a value in the engine with its id.
	maxRecord = 4096
	// maxLevel is the maximum feature level that can be read.
	maxLevel = 1 << 20
)

// errRecord is the error of a record that cannot be read.
var errRecord = errors.New("not the record of a server")

// text returns the stored form of r. Texts of r that a record cannot have are changed: see clean.
func (r *Record) text() string {
	is := stored{
		Release: clean(r.Release), Address: clean(r.Address), Version: r.Version.String(), File: clean(r.File),
		Level: &r.Level, Tzdata: clean(r.Tzdata), Started: int64(r.Started) / 1e6,
	}
	b, err := json.Marshal(is)
	if err != nil {
		panic(fmt.Errorf("servers: strings and numbers are not JSON: %w", err))
	}
	return string(b)
}

// parseRecord returns the record whose stored form is text, which may be any bytes.
func parseRecord(text string) (Record, error) {
	var is stored
	if err := json.Unmarshal([]byte(text), &is); err != nil {
		return Record{}, errRecord
	}
	for _, s := range []string{is.Release, is.Address, is.File, is.Tzdata} {
		if clean(s) != s {
			return Record{}, errRecord
		}
	}
	v, err := records.ParseVersion(is.Version)
	if err != nil || is.Level == nil || *is.Level < 0 || *is.Level > maxLevel || is.Started < 0 || is.Started > maxMillis {
		return Record{}, errRecord
	}
	return Record{
		Release: is.Release, Address: is.Address, Version: v, File: is.File, Level: *is.Level, Tzdata: is.Tzdata,
		Started: limit.Instant(is.Started * 1e6),
	}, nil
}

// maxMillis is the maximum time in Unix milliseconds: in the year 2255.
const maxMillis = 9_000_000_000_000

// clean returns s in a form for a line of INFO or of a log: '_' replaces each byte that is a comma or not printable
// ASCII, and the result is cut to maxText bytes.
func clean(s string) string {
	s = s[:min(len(s), maxText)]
	for i := range len(s) {
		if !printable(s[i]) {
			b := []byte(s)
			for i := range b {
				if !printable(b[i]) {
					b[i] = '_'
				}
			}
			return string(b)
		}
	}
	return s
}

func printable(c byte) bool { return c > ' ' && c <= '~' && c != ',' }

// Server is a server with its record in the engine.
type Server struct {
	// ID is the random id of the run of the server.
	ID string
	Record
	// Unreadable says that the record cannot be read, so that Record is the zero Record.
	Unreadable bool
	// Beat is the instant, by the engine's clock, at which the server has written its record.
	Beat limit.Instant
}

// Age returns the time from the latest beat of the server to now, at least 0.
func (s *Server) Age(now limit.Instant) time.Duration { return max(0, now.Sub(s.Beat)) }

// Name returns the address of the server, or its id if its record cannot be read.
func (s *Server) Name() string { return cmp.Or(s.Address, s.ID) }

// has reports whether the server has the policies of the version v or a later one. After a failover of the engine,
// another version may have the same number.
func (s *Server) has(v records.Version) bool {
	return !s.Unreadable && (s.Version == v || s.Version.Number > v.Number)
}

// errReply is the error for a reply of the engine that is not a reply of the script.
var errReply = errors.New("the store replied what no script of ours returns")

// ErrFull is the error of the beat of a server while the engine has records of too many servers.
var ErrFull = fmt.Errorf("the store has records of more than %d servers: if there are not so many, delete the key %q behind store-prefix", maxServers, Key)

// parseBeat returns the servers in reply, the reply of beat.lua, by their names and ids. The error is ErrFull or
// errReply.
func parseBeat(reply any) ([]Server, error) {
	all, ok := reply.([]any)
	if !ok || len(all) < 2 {
		return nil, errReply
	}
	texts := make([]string, len(all))
	for i, one := range all {
		if texts[i], ok = one.(string); !ok {
			return nil, errReply
		}
	}
	if texts[1] == "full" {
		return nil, ErrFull
	}
	if texts[1] != "ok" || len(texts)%2 != 0 || len(texts) > 2+2*maxServers {
		return nil, errReply
	}
	list := make([]Server, 0, len(texts)/2-1)
	for i := 2; i < len(texts); i += 2 {
		list = append(list, parseServer(texts[i], texts[i+1]))
	}
	slices.SortFunc(list, func(a, b Server) int { return cmp.Or(strings.Compare(a.Name(), b.Name()), strings.Compare(a.ID, b.ID)) })
	return list, nil
}

// parseServer returns the server with the given id and value in the engine, both of which may be any bytes.
func parseServer(id, value string) Server {
	s := Server{ID: clean(id)}
	beat, rest, _ := strings.Cut(value, " ")
	_, text, _ := strings.Cut(rest, " ")
	ms := parseMillis(beat)
	s.Beat = limit.Instant(max(0, ms) * 1e6)
	var err error
	s.Record, err = parseRecord(text)
	s.Unreadable = err != nil || ms < 0
	if s.Unreadable {
		s.Record = Record{}
	}
	return s
}
