package stats

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/resp"
)

// Errors counts error replies, in total and by their first word. Every writer of replies to clients
// calls Add through [resp.Writer].OnError. Any goroutine may use it.
type Errors struct {
	Total atomic.Int64
	mu    sync.Mutex // locked while a word is added
	// words has the counters by word. The map is replaced, never modified; it is nil without
	// errors.
	words atomic.Pointer[map[string]*atomic.Int64]
}

const (
	// maxErrorWords is the number of words after which new words of errors that scripts make are
	// counted together, as errorOverflow: a script can make any word.
	maxErrorWords = 128
	errorOverflow = "ERRORSTATS_OVERFLOW"
	// maxErrorWord is the maximum length of a word in bytes; Redis searches for the end of the word
	// up to there, too.
	maxErrorWord = 30
)

// errorWord returns the word by which the error e is counted: its first word, or "ERR" if no space
// follows the word or the word is longer than maxErrorWord.
func errorWord(e resp.Error) string {
	if i := strings.IndexByte(string(e[:min(len(e), maxErrorWord+1)]), ' '); i > 0 {
		return string(e[:i])
	}
	return "ERR"
}

// Add counts the error e. from says where the error comes from; it is not counted if it repeats
// another one.
func (s *Errors) Add(e resp.Error, from resp.Origin) {
	if from == resp.Repeated {
		return
	}
	s.Total.Add(1)
	word := errorWord(e)
	if words := s.words.Load(); words != nil {
		if n := (*words)[word]; n != nil {
			n.Add(1)
			return
		}
	}
	s.counter(word, from).Add(1)
}

// counter returns the counter of word, and creates it if necessary. If there are maxErrorWords
// words already, an unknown word of a script gets the counter of errorOverflow.
func (s *Errors) counter(word string, from resp.Origin) *atomic.Int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known map[string]*atomic.Int64
	if words := s.words.Load(); words != nil {
		known = *words
	}
	if from == resp.OfScript && len(known) >= maxErrorWords && known[word] == nil {
		word = errorOverflow
	}
	if n := known[word]; n != nil {
		return n
	}
	n, more := new(atomic.Int64), make(map[string]*atomic.Int64, len(known)+1)
	maps.Copy(more, known)
	more[strings.Clone(word)] = n
	s.words.Store(&more)
	return n
}

// Reset removes all counts, including the total.
func (s *Errors) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Total.Store(0)
	s.words.Store(nil)
}

// Each calls f for each word and its count, in the order of the words. Characters that would break
// a line of INFO are replaced.
func (s *Errors) Each(f func(word string, count int64)) {
	words := s.words.Load()
	if words == nil {
		return
	}
	for _, word := range slices.Sorted(maps.Keys(*words)) {
		f(strings.Map(infoSafe, word), (*words)[word].Load())
	}
}

// infoSafe returns '_' for a character that has a meaning in INFO, as Redis does, and r for any
// other.
func infoSafe(r rune) rune {
	if r < ' ' || r == '#' || r == ':' {
		return '_'
	}
	return r
}
