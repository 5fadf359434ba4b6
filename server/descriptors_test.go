package server_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/internal/inproc"
	"github.com/cellserver/cellserver/limit"
)

// recordedRow is a line of a recording of envoyproxy/ratelimit.
type recordedRow struct {
	Case     string
	Feature  string
	Settings map[string]string
	Files    map[string]string
	At       int64
	Req, Res json.RawMessage
	Error    *struct{ Code, Message string }
	Stats    map[string]int64
}

// recordedCases returns the cases of a recording: the line that begins a case, its rows, and the statistics, whose line has no
// request.
func recordedCases(t *testing.T, name string) (cases [][]recordedRow) {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	in := bufio.NewScanner(unzipped)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var row recordedRow
		require.NoError(t, json.Unmarshal(in.Bytes(), &row))
		switch {
		case row.Case != "":
			cases = append(cases, []recordedRow{row})
		default:
			cases[len(cases)-1] = append(cases[len(cases)-1], row)
		}
	}
	require.NoError(t, in.Err())
	return cases
}

// flagsOf returns the flags of a server with the settings and files of a case.
func flagsOf(t *testing.T, is *recordedRow) []string {
	dir := t.TempDir()
	for name, text := range is.Files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	flags := []string{"--http-port", "8080", "--rls-config", dir}
	yes := func(setting, option, value string) {
		if is.Settings[setting] == "true" {
			flags = append(flags, option, value)
		}
	}
	yes("MERGE_DOMAIN_CONFIG", "--rls-merge-domains", "yes")
	yes("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "--rls-charge", "together")
	yes("SHADOW_MODE", "--rls-shadow", "yes")
	yes("QUOTA_MODE", "--rls-quota", "yes")
	yes("RESPONSE_DYNAMIC_METADATA", "--rls-metadata", "yes")
	names := []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}
	for i, setting := range []string{"LIMIT_LIMIT_HEADER", "LIMIT_REMAINING_HEADER", "LIMIT_RESET_HEADER"} {
		if name := is.Settings[setting]; name != "" {
			names[i] = name
		}
	}
	yes("LIMIT_RESPONSE_HEADERS_ENABLED", "--rls-headers", strings.Join(names, " "))
	return flags
}

// TestRecordedAnswersOfRatelimit asks servers, without and with a store, what envoyproxy/ratelimit was asked, by POST /json.
// The row that differs is that of package rls.
func TestRecordedAnswersOfRatelimit(t *testing.T) {
	const accident = "override-0-4 at 1701705300"
	most := effort.Steps(1, 100) // cases of each file
	for _, kind := range []string{"keyspace", "store"} {
		names, err := filepath.Glob("../rls/testdata/envoy-*.jsonl.gz")
		require.NoError(t, err)
		require.Len(t, names, 24)
		var differ []string
		rows := 0
		for _, name := range names {
			for i, rowsOf := range recordedCases(t, name) {
				if i >= most {
					break
				}
				inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
					is := &rowsOf[0]
					start, flags := limit.Instant(rowsOf[1].At*1e9), flagsOf(t, is)
					var s *inproc.Still
					if kind == "store" {
						s, _ = w.StillWithStore(start, append(flags, "--store", "valkey://double:1")...)
					} else {
						s = w.Still(start, nil, flags...)
					}
					w.Settle()
					web, url := w.HTTP(w.Host()), "http://"+s.HTTPAddr().String()+"/json"
					for _, row := range rowsOf[1 : len(rowsOf)-1] {
						rows++
						s.Clock.Set(limit.Instant(row.At * 1e9))
						got := posts(t, web, url, string(row.Req))
						if differs(t, &row, got) {
							differ = append(differ, fmt.Sprintf("%s at %d", is.Case, row.At))
							t.Logf("%s %s %d\n  %s\n  want %s %v\n  got  %d %s", kind, is.Case, row.At, row.Req, row.Res, row.Error, got.status, got.body)
						}
					}
				})
			}
		}
		if most == 1 {
			require.Empty(t, differ)
			continue
		}
		require.Equal(t, 8640, rows)
		require.Equal(t, []string{accident}, differ)
	}
}

// posts sends a request and returns the response.
func posts(t *testing.T, c *http.Client, url, body string) answer {
	t.Helper()
	w, err := c.Post(url, "application/json", strings.NewReader(body)) //nolint:noctx // the server of the bubble answers at once
	require.NoError(t, err)
	all, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	require.NoError(t, w.Body.Close())
	return answer{w.StatusCode, w.Header, string(all)}
}

// differs reports whether got is another answer than that of row.
func differs(t *testing.T, row *recordedRow, got answer) bool {
	t.Helper()
	if row.Error != nil {
		return got.status != http.StatusBadRequest
	}
	var want, is any
	require.NoError(t, json.Unmarshal(row.Res, &want))
	if _, text := want.(string); text {
		return got.status != http.StatusBadRequest
	}
	if json.Unmarshal([]byte(got.body), &is) != nil {
		return true
	}
	over := want.(map[string]any)["overallCode"] == "OVER_LIMIT"
	return !reflect.DeepEqual(want, is) || over != (got.status == http.StatusTooManyRequests)
}
