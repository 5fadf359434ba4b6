package compat_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// syncLine is the head of a scenario of github.com/RussellLuo/slidingwindow with
// SyncWindow, or one step of it with the calls that it made on its data store.
type syncLine struct {
	Scenario string
	Family   string
	Epoch    int64 `json:"epoch_ns"`
	Params   struct {
		Size int64 `json:"size_ms"`
	}
	At     int64 `json:"at_ns"`
	Result struct{ Store [][]any }
}

// TestSyncWindowStore replays what limiters of two processes that share a store over
// INCRBY, EXPIRE and GET asked of it, every sum of which has to be right.
func TestSyncWindowStore(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "oracle", "libraries", "slidingwindow.jsonl.gz"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	in, err := gzip.NewReader(f)
	require.NoError(t, err)
	var s *inproc.Session
	var head syncLine
	steps, calls := 0, 0
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var line syncLine
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		if line.Scenario != "" {
			if s != nil {
				s.Close()
				s = nil
			}
			if head = line; head.Family == "sync" {
				s, err = inproc.Feed(limit.Instant(head.Epoch))
				require.NoError(t, err)
			}
			continue
		}
		if s == nil {
			continue
		}
		steps++
		s.Server().Clock.Set(limit.Instant(head.Epoch + line.At))
		for _, words := range line.Result.Store {
			calls++
			playStoreCall(t, s, &head, words)
		}
	}
	if s != nil {
		s.Close()
	}
	require.Equal(t, 2560, steps)
	require.Greater(t, calls, 500)
}

// playStoreCall plays an INCRBY, which is followed by an EXPIRE of two windows, or a
// GET; the last word is the sum that the library got.
func playStoreCall(t *testing.T, s *inproc.Session, head *syncLine, words []any) {
	t.Helper()
	key := words[1].(string)
	want := int64(words[len(words)-1].(float64))
	if words[0] == "GET" {
		v, err := s.Value("GET", key)
		require.NoError(t, err)
		got := int64(0)
		if !v.Null {
			got, err = strconv.ParseInt(v.Text, 10, 64)
			require.NoError(t, err)
		}
		require.Equal(t, want, got, "%s: %v", head.Scenario, words)
		return
	}
	v, err := s.Value("INCRBY", key, strconv.FormatInt(int64(words[2].(float64)), 10))
	require.NoError(t, err)
	require.Equal(t, want, v.Int, "%s: %v", head.Scenario, words)
	v, err = s.Value("EXPIRE", key, strconv.FormatInt(2*head.Params.Size/1000, 10))
	require.NoError(t, err)
	require.Equal(t, int64(1), v.Int)
}
