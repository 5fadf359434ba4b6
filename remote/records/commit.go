package records

import (
	"context"
	"errors"
	"strconv"

	"github.com/cellserver/cellserver/decide"
	"github.com/cellserver/cellserver/policy/registry"
)

// tries is the number of times that a change whose outcome is unknown is sent.
const tries = 3

// ErrTooLarge is the error of a change with more than 64 MiB of keys and values. Nothing was sent.
var ErrTooLarge = errors.New("a change of policies has at most 64 MiB of records: make several changes of it")

// errDoubt is the error of a change whose outcome is unknown.
const errDoubt = decide.Unavailable("the store does not answer: the change of policies may be in force or not, read them before you repeat it")

// errNumber is the error of a change after the last number. Servers never reach that number, so another program must
// have written it.
const errNumber = decide.Unavailable("the version in the store is the last one: delete the keys of policies there, and set the policies again")

var errPairs = errors.New("records: a key has no value")

// SetStrings writes keys and values, which pairs has alternately, as one change. An empty value
// deletes the record. If the engine does not have the version that the latest Refresh has observed,
// the error is [registry.ErrStale]. The error is [ErrTooLarge] for a change of more than 64 MiB. It
// is a [decide.Unavailable] if the engine does not answer; then its text says whether the change
// may be in force nevertheless. SetStrings waits for the engine, for a few times the time limit of
// a request at most. It ignores the need.
func (s *Store) SetStrings(pairs [][]byte, _ registry.Need) error {
	_, err := s.set(pairs)
	return err
}

// set is SetStrings that also returns the version of the change; the zero Version if there are no pairs.
func (s *Store) set(pairs [][]byte) (made Version, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(pairs)%2 != 0:
		return Version{}, errPairs
	case !s.loaded.Load():
		return Version{}, errUnread
	case s.base != s.at:
		return Version{}, registry.ErrStale // the plan of the change is older than the records
	case len(pairs) == 0:
		return Version{}, nil
	}
	if err := s.commit(context.Background(), pairs); err != nil {
		return Version{}, err
	}
	s.base = s.at
	return s.at, nil
}

// Delete deletes the records with the given keys, as SetStrings does with empty values.
func (s *Store) Delete(keys ...[]byte) error { return s.SetStrings(deletions(keys), registry.Frees) }

// deletions returns the pairs that delete the records with the given keys.
func deletions(keys [][]byte) [][]byte {
	pairs := make([][]byte, 0, 2*len(keys))
	for _, key := range keys {
		pairs = append(pairs, key, nil)
	}
	return pairs
}

// Removes implements registry.Store: an empty value deletes a record.
func (*Store) Removes() bool { return true }

// commit writes pairs as one change at the version s.at. The caller holds mu.
func (s *Store) commit(ctx context.Context, pairs [][]byte) error {
	if s.at.Number >= maxNumber {
		return errNumber
	}
	next := Version{s.at.Number + 1, 0}
	for next.ID == 0 {
		next.ID = s.o.ID()
	}
	keys, args, err := s.request(next, pairs)
	if err != nil {
		return err
	}
	doubt := false // whether an earlier try may have been done, or may be done later
	for range tries {
		reply, err := s.eval(ctx, commitScript, keys, args...)
		var head Version
		if err == nil {
			head, err = committed(reply)
		}
		switch {
		case err == nil && head == next:
			s.move(next)
			return nil
		case err == nil && doubt:
			return s.resolve(ctx, next)
		case err == nil:
			return registry.ErrStale
		case notDone(err) && !doubt:
			return unavailable(err)
		case !notDone(err):
			doubt = true
		}
	}
	return errDoubt
}

// committed returns the version in reply, the reply of commit.lua.
func committed(reply any) (Version, error) {
	text, ok := reply.(string)
	if !ok {
		return Version{}, errReply
	}
	return headOf(text)
}

// request returns the keys and arguments of commit.lua for the change to the version next. The error
// is ErrTooLarge. The caller holds mu.
func (s *Store) request(next Version, pairs [][]byte) (keys, args []string, err error) {
	var texts [buckets][]byte
	size := 0
	for i := 0; i < len(pairs); i += 2 {
		if size += len(pairs[i]) + len(pairs[i+1]); size > s.bounds.changeBytes {
			return nil, nil, ErrTooLarge
		}
		text := &texts[bucketOf(pairs[i])]
		*text = appendText(appendText(*text, pairs[i]), pairs[i+1])
	}
	c := change{id: next.ID, previous: s.at.ID, millis: int64(s.o.Now()) / 1e6, whole: size > s.bounds.logPairs}
	inLog, trimmed := "1", ""
	if c.whole {
		inLog = ""
	}
	if most := uint64(s.bounds.logEntries); next.Number > most {
		trimmed = strconv.FormatUint(next.Number-most, 10)
	}
	keys = []string{headKey, logKey}
	args = []string{s.at.String(), next.String(), strconv.FormatUint(next.Number, 10), c.head(), inLog, trimmed}
	for i, text := range texts {
		if len(text) > 0 {
			keys, args = append(keys, bucketKey(i)), append(args, string(text))
		}
	}
	return keys, args, nil
}

// resolve determines from the log whether the change to the version next was done. It returns nil
// if it was, and otherwise ErrStale or errDoubt. The caller holds mu.
func (s *Store) resolve(ctx context.Context, next Version) error {
	for range tries {
		reply, err := s.eval(ctx, idsScript, []string{headKey, logKey}, strconv.FormatUint(next.Number, 10))
		if err != nil {
			continue
		}
		head, ids, err := parseIDs(reply, 1)
		switch {
		case err != nil:
			return errDoubt
		case ids[0] == next.ID:
			s.move(next)
			return nil
		case ids[0] != 0 || head.Number < next.Number: // another change has the number, or the engine has lost the change in a failover
			return registry.ErrStale
		}
		return errDoubt // the log does not have the change any more, so the outcome is unknown
	}
	return errDoubt
}
