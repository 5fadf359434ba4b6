package stats

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/resp"
)

// countsOf returns the counts that INFO shows.
func countsOf(s *Errors) map[string]int64 {
	counts := map[string]int64{}
	s.Each(func(word string, count int64) { counts[word] += count })
	return counts
}

func TestErrorWord(t *testing.T) {
	for e, want := range map[resp.Error]string{
		"ERR syntax error": "ERR", "WRONGTYPE Operation": "WRONGTYPE", "": "ERR", " x": "ERR", "alone": "ERR",
		"Cell error: x": "Cell",
		resp.Error(strings.Repeat("a", 30) + " b"):  strings.Repeat("a", 30),
		resp.Error(strings.Repeat("a", 31) + " b"):  "ERR",
		resp.Error(strings.Repeat("a", 1<<20)):      "ERR",
		resp.Error("a\r\nb:c#d ") + "text":          "a\r\nb:c#d",
		resp.Error("\xff\x00 ") + "bytes of nobody": "\xff\x00",
	} {
		require.Equal(t, want, errorWord(e), "%.40q", e)
	}
}

// TestErrorWordsAreBounded: scripts may use any words, and these take bounded memory and do not
// displace the server's own words.
func TestErrorWordsAreBounded(t *testing.T) {
	var s Errors
	for i := range 10_000 {
		s.Add(resp.Error(fmt.Sprintf("W%d text", i)), resp.OfScript)
	}
	s.Add("OOM command not allowed", resp.OfServer)
	s.Add("OOM command not allowed", resp.Repeated)
	s.Add("W5 again", resp.OfScript)
	counts := countsOf(&s)
	require.Len(t, counts, maxErrorWords+2)
	require.EqualValues(t, 1, counts["OOM"])
	require.EqualValues(t, 2, counts["W5"])
	require.EqualValues(t, 10_000-maxErrorWords, counts[errorOverflow])
	require.EqualValues(t, 10_002, s.Total.Load())
	s.Reset()
	require.Empty(t, countsOf(&s))
	require.Zero(t, s.Total.Load())
	s.Add("a\r\nb:c#d text", resp.OfScript)
	require.Equal(t, map[string]int64{"a__b_c_d": 1}, countsOf(&s), "nothing forges a line of INFO")
}

// TestErrorStatsAreExact: no count is lost between goroutines that add words at once.
func TestErrorStatsAreExact(t *testing.T) {
	var s Errors
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 1000 {
				s.Add(resp.Error(fmt.Sprintf("W%d text", (i+g)%50)), resp.OfScript)
			}
		})
	}
	all.Wait()
	counts := countsOf(&s)
	require.Len(t, counts, 50)
	for _, n := range counts {
		require.EqualValues(t, 160, n)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Add("W7 text", resp.OfScript) }))
}
