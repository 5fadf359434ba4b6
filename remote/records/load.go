package records

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/cellserver/cellserver/limit"
)

// loads is the maximum number of attempts to read all records without a change or a failover in
// between.
const loads = 8

// errRestless is the error if changes prevent the server from reading all records at one version.
var errRestless = errors.New("the records changed too much while they were read")

// Load reads all records and passes them to the observer at once. It waits for the engine, for a
// round trip per 1000 records at least. If there is an error, nothing is passed. It returns the
// error of the engine, or one that names a record that cannot be read.
func (s *Store) Load(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reload(ctx)
}

// reload does what Load does, for a caller that holds mu. It also counts the versions that the
// engine has lost.
func (s *Store) reload(ctx context.Context) error {
	is, err := s.read(ctx)
	if err != nil {
		return err
	}
	kept, lost, err := s.compare(ctx)
	if err != nil {
		return err
	}
	s.o.Observer.ObserveAll(is.all())
	s.loaded.Store(true)
	s.known = slices.DeleteFunc(kept, func(v Version) bool { return v == is.version })
	s.move(is.version)
	s.followed.Store(int64(is.now))
	if lost > 0 {
		s.lost.Add(int64(lost))
		s.o.Log.Error("the store has lost changes of policies that were in force", "changes", lost)
	}
	return nil
}

// compare compares the known versions with the log. It returns those that the log has, and the
// number of those that the engine has lost. It ignores versions that are too old for the log. The
// caller holds mu.
func (s *Store) compare(ctx context.Context) (kept []Version, lost int, err error) {
	known := s.known[max(0, len(s.known)-s.bounds.known):]
	if len(known) == 0 {
		return nil, 0, nil
	}
	numbers := make([]string, len(known))
	for i, v := range known {
		numbers[i] = strconv.FormatUint(v.Number, 10)
	}
	reply, err := s.eval(ctx, idsScript, []string{headKey, logKey}, numbers...)
	if err != nil {
		return nil, 0, err
	}
	head, ids, err := parseIDs(reply, len(known))
	if err != nil {
		return nil, 0, err
	}
	for i, v := range known {
		switch {
		case taken(v, head, ids[i]):
			lost++
		case ids[i] == v.ID:
			kept = append(kept, v)
		}
	}
	return kept, lost, nil
}

// table has all records at one version.
type table struct {
	records map[string]string
	version Version
	now     limit.Instant // the engine's time at which it had the version
}

// all returns the records. The bytes of a pair are valid until the iterator yields the next pair.
func (t *table) all() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		var k, v []byte
		for key, value := range t.records {
			k, v = append(k[:0], key...), append(v[:0], value...)
			if !yield(k, v) {
				return
			}
		}
	}
}

// read reads all records. If a change or a failover disturbs it, it begins again, loads times at
// most.
func (s *Store) read(ctx context.Context) (*table, error) {
	for range loads {
		t, sound, err := s.readOnce(ctx)
		if err != nil || sound {
			return t, err
		}
	}
	return nil, errRestless
}

// readOnce reads the hashes, one part after the other, and then the changes since. Each part is
// read at some version. The result is valid if the log has all these versions, from the first to
// the last. Otherwise a part may have a change that the engine has lost since.
func (s *Store) readOnce(ctx context.Context) (t *table, sound bool, err error) {
	f, err := s.changes(ctx, Version{}, 0)
	if err != nil {
		return nil, false, err
	}
	t = &table{records: map[string]string{}, version: f.head}
	seen, err := s.scan(ctx, t)
	if err != nil {
		return nil, false, err
	}
	delete(seen, t.version)
	for range mostSteps {
		f, err := s.changes(ctx, t.version, s.bounds.stepEntries)
		if err != nil {
			return nil, false, err
		}
		if f.reload || !t.apply(f.entries, seen) {
			return nil, false, nil
		}
		if f.head == t.version {
			t.now = f.now
			return t, len(seen) == 0, nil
		}
		if len(f.entries) == 0 {
			return nil, false, errReply
		}
	}
	return nil, false, errFast
}

// scan reads the hashes into t. It returns the versions at which it has read them.
func (s *Store) scan(ctx context.Context, t *table) (seen map[Version]struct{}, err error) {
	seen = map[Version]struct{}{}
	keys := append([]string{headKey}, bucketKeys()...)
	for bucket, cursor := 0, "0"; bucket < buckets; {
		reply, err := s.eval(ctx, scanScript, keys, strconv.Itoa(bucket), cursor, strconv.Itoa(s.bounds.scan))
		if err != nil {
			return nil, err
		}
		part, err := parseScanned(reply)
		if err == nil && (part.bucket < bucket || part.bucket == bucket && part.cursor == "0") {
			err = errReply // otherwise a scan that never ends would loop forever
		}
		if err != nil {
			return nil, fmt.Errorf("record %q of the store: %w", bucketKey(bucket), err)
		}
		for i := 0; i < len(part.pairs); i += 2 {
			t.records[part.pairs[i]] = part.pairs[i+1]
		}
		seen[part.head] = struct{}{}
		bucket, cursor = part.bucket, part.cursor
	}
	return seen, nil
}

// apply applies entries of the log to t, and removes their versions from seen. It returns false at
// an entry that cannot be read, has no pairs, or does not follow the version of t.
func (t *table) apply(entries []string, seen map[Version]struct{}) bool {
	for _, text := range entries {
		c, err := parseChange(text)
		if err != nil || c.whole || c.previous != t.version.ID {
			return false
		}
		for i := 0; i < len(c.pairs); i += 2 {
			if c.pairs[i+1] == "" {
				delete(t.records, c.pairs[i])
				continue
			}
			t.records[c.pairs[i]] = c.pairs[i+1]
		}
		t.version = Version{t.version.Number + 1, c.id}
		delete(seen, t.version)
	}
	return true
}
