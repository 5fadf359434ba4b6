package records

import (
	"context"
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/limit"
)

// mostSteps is the maximum number of requests of one Follow. It is more than the log has entries.
const mostSteps = 20_000

// errFast is the error if other servers change the records faster than this server can read them.
var errFast = errors.New("the records change faster than they can be read")

// Follow applies the changes of other servers. It reads all records if the log no longer has the
// changes since the version of this server, or does not have that version at all. changed reports
// whether the observer has a new version. It waits for the engine: for one reply if nothing has
// changed. It returns the error of the engine, or one that names a record that cannot be read; the
// changes that were observed before the error remain.
func (s *Store) Follow(ctx context.Context) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, loaded := s.at, s.loaded.Load()
	err = s.follow(ctx)
	return s.at != before || s.loaded.Load() != loaded, err
}

// follow does what Follow does, for a caller that holds mu.
func (s *Store) follow(ctx context.Context) error {
	if !s.loaded.Load() {
		return s.reload(ctx)
	}
	for range mostSteps {
		f, err := s.changes(ctx, s.at, s.bounds.stepEntries)
		switch {
		case err != nil:
			return err
		case f.reload || !s.take(f.entries, f.now):
			return s.reload(ctx)
		case f.head == s.at:
			s.followed.Store(int64(f.now))
			return nil
		case len(f.entries) == 0:
			return errReply
		}
	}
	return errFast
}

// changes reads the changes after the version v, at most the first most of them.
func (s *Store) changes(ctx context.Context, v Version, most int) (followed, error) {
	reply, err := s.eval(ctx, followScript, []string{headKey, logKey},
		v.String(), strconv.FormatUint(v.Number, 10), v.id(), strconv.Itoa(most), strconv.Itoa(s.bounds.stepBytes))
	if err != nil {
		return followed{}, err
	}
	return parseFollowed(reply)
}

// take passes entries of the log, read at now, to the observer. It stops and returns false at an entry that
// cannot be read, has no pairs, or does not follow the version s.at. The caller holds mu.
func (s *Store) take(entries []string, now limit.Instant) bool {
	for _, text := range entries {
		c, err := parseChange(text)
		if err != nil || c.whole || c.previous != s.at.ID {
			return false
		}
		s.o.Observer.ObserveChange(c.all())
		s.move(Version{s.at.Number + 1, c.id})
		s.observed(&c, now)
	}
	return true
}
