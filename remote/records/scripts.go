package records

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/cellserver/cellserver/limit"

	_ "embed" // the scripts
)

// These are the scripts that the engine runs. Each describes its keys, arguments and reply.
var (
	//go:embed commit.lua
	commitScript string
	//go:embed follow.lua
	followScript string
	//go:embed scan.lua
	scanScript string
	//go:embed ids.lua
	idsScript string
)

// ScriptName returns the name of script, one of this package: commit, follow, scan or ids. It returns "" for another
// script. It is for engines in memory.
func ScriptName(script string) string {
	switch script {
	case commitScript:
		return "commit"
	case followScript:
		return "follow"
	case scanScript:
		return "scan"
	case idsScript:
		return "ids"
	}
	return ""
}

// errReply is the error for a reply that none of the scripts returns, for example one with the
// wrong form.
var errReply = errors.New("the store replied what no script of ours returns")

// textsOf returns the strings of an array of at least n strings.
func textsOf(reply any, n int) ([]string, error) {
	all, ok := reply.([]any)
	if !ok || len(all) < n {
		return nil, errReply
	}
	texts := make([]string, len(all))
	for i, one := range all {
		if texts[i], ok = one.(string); !ok {
			return nil, errReply
		}
	}
	return texts, nil
}

// headOf returns the version whose record in the engine is text.
func headOf(text string) (Version, error) {
	v, err := ParseVersion(text)
	if err != nil {
		return Version{}, fmt.Errorf("record %q of the store: %w", headKey, err)
	}
	return v, nil
}

// followed is the reply of follow.lua.
type followed struct {
	head Version
	now  limit.Instant // the time of the engine, as an instant
	// reload says that the known version is not in the log, so that all records must be read.
	reload  bool
	entries []string
}

// parseFollowed returns the parts of reply, the reply of follow.lua.
func parseFollowed(reply any) (f followed, err error) {
	texts, err := textsOf(reply, 4)
	if err != nil {
		return followed{}, err
	}
	if f.head, err = headOf(texts[0]); err != nil {
		return followed{}, err
	}
	s, err := strconv.ParseUint(texts[1], 10, 33)
	us, err2 := strconv.ParseUint(texts[2], 10, 32)
	if err != nil || err2 != nil || us >= 1e6 {
		return followed{}, fmt.Errorf("time of the store: %w", errReply)
	}
	f.now = limit.Instant(s*1e9 + us*1e3)
	switch texts[3] {
	case "ok":
		f.entries = texts[4:]
	case "reload":
		f.reload = true
	default:
		return followed{}, errReply
	}
	return f, nil
}

// scanned is the reply of scan.lua.
type scanned struct {
	head   Version
	bucket int // the hash to read next; equal to buckets at the end
	cursor string
	pairs  []string // the keys and the values of the records alternately
}

// parseScanned returns the parts of reply, the reply of scan.lua.
func parseScanned(reply any) (s scanned, err error) {
	texts, err := textsOf(reply, 3)
	if err != nil {
		return scanned{}, err
	}
	if s.head, err = headOf(texts[0]); err != nil {
		return scanned{}, err
	}
	if s.bucket, err = strconv.Atoi(texts[1]); err != nil || s.bucket < 0 || s.bucket > buckets || len(texts)%2 == 0 {
		return scanned{}, errReply
	}
	s.cursor, s.pairs = texts[2], texts[3:]
	return s, nil
}

// parseIDs returns the head and the n ids of reply, the reply of ids.lua. An id is 0 if the log does
// not have the change or its entry cannot be read.
func parseIDs(reply any, n int) (head Version, ids []uint64, err error) {
	texts, err := textsOf(reply, n+1)
	if err != nil {
		return Version{}, nil, err
	}
	if head, err = headOf(texts[0]); err != nil || len(texts) != n+1 {
		return Version{}, nil, errors.Join(err, errReply)
	}
	ids = make([]uint64, n)
	for i, text := range texts[1:] {
		ids[i], _ = parseID(text) // the id of an entry that cannot be read is 0
	}
	return head, ids, nil
}
