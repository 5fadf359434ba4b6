package records

// Small changes the bounds of s to small ones, so that a test reaches them.
func (s *Store) Small(logEntries, logPairs, known, steps int) {
	s.bounds.logEntries, s.bounds.logPairs, s.bounds.known = logEntries, logPairs, known
	s.bounds.stepEntries, s.bounds.stepBytes, s.bounds.scan = steps, 64, 1
}

// MostBytes changes the maximum size of a change.
func (s *Store) MostBytes(n int) { s.bounds.changeBytes = n }

// Known returns the number of versions that s remembers.
func (s *Store) Known() int { return len(s.known) }

// These are the scripts and the parts of the codec, for tests.
var (
	CommitScript = commitScript
	FollowScript = followScript
	ScanScript   = scanScript
	IDsScript    = idsScript

	BucketKey  = bucketKey
	BucketOf   = bucketOf
	BucketKeys = bucketKeys
)

// Change is an entry of the log.
type Change struct {
	ID, Previous uint64
	Millis       int64
	Whole        bool
	Pairs        []string
}

// Head returns the beginning of the entry of c.
func (c Change) Head() string {
	is := change{id: c.ID, previous: c.Previous, millis: c.Millis, whole: c.Whole}
	return is.head()
}

// ParseChange returns the change whose entry is text.
func ParseChange(text string) (Change, error) {
	c, err := parseChange(text)
	return Change{c.id, c.previous, c.millis, c.whole, c.pairs}, err
}

// ParseReplies parses reply as the replies of all scripts.
func ParseReplies(reply any) (errs []error) {
	_, err := parseFollowed(reply)
	_, err2 := parseScanned(reply)
	_, _, err3 := parseIDs(reply, 1)
	_, err4 := committed(reply)
	return []error{err, err2, err3, err4}
}

// PairsOf returns the part of an entry with pairs.
func PairsOf(pairs [][]byte) []byte {
	var text []byte
	for _, s := range pairs {
		text = appendText(text, s)
	}
	return text
}
