package stats

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cellserver/cellserver/resp"
)

// Errors counts error replies, in total and by their first word. Any goroutine may use it. Every
// writer of replies to clients reports to it, through [resp.Writer.OnError].
type Errors struct {
	Total atomic.Int64
	mu    sync.Mutex // held while a word is added
	// words is replaced, never modified; nil without any.
	words atomic.Pointer[map[string]*atomic.Int64]
}

const (
	// maxErrorWords bounds the words: further words that only scripts use are counted together.
	maxErrorWords = 128
	errorOverflow = "ERRORSTATS_OVERFLOW"
	// maxErrorWord bounds the bytes of a word; Redis searches for its end up to there.
	maxErrorWord = 30
)

// errorWord returns the word by which an error is counted.
func errorWord(e resp.Error) string {
	if i := strings.IndexByte(string(e[:min(len(e), maxErrorWord+1)]), ' '); i > 0 {
		return string(e[:i])
	}
	return "ERR"
}

// Add counts an error.
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

// counter returns the counter of a word, which may be new.
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

// Reset removes all counts.
func (s *Errors) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Total.Store(0)
	s.words.Store(nil)
}

// Each calls f with the words in order. Bytes that would break a line of INFO are replaced.
func (s *Errors) Each(f func(word string, count int64)) {
	words := s.words.Load()
	if words == nil {
		return
	}
	for _, word := range slices.Sorted(maps.Keys(*words)) {
		f(strings.Map(infoSafe, word), (*words)[word].Load())
	}
}

// infoSafe replaces characters with a meaning in INFO, as Redis does.
func infoSafe(r rune) rune {
	if r < ' ' || r == '#' || r == ':' {
		return '_'
	}
	return r
}
