package rls_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/policy/strict"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// recorded is a line of a recording of envoyproxy/ratelimit.
type recorded struct {
	Case     string
	Settings map[string]string
	Files    map[string]string

	At    int64
	Req   json.RawMessage
	Res   json.RawMessage
	Error *struct{ Code, Message string }

	Stats json.RawMessage
}

// lines calls f for each line of a recording.
func lines[T any](t *testing.T, name string, f func(line *T)) {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	in := bufio.NewScanner(unzipped)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := new(T)
		require.NoError(t, json.Unmarshal(in.Bytes(), line))
		f(line)
	}
	require.NoError(t, in.Err())
}

// filesOf returns files in the order of their names.
func filesOf(texts map[string]string) (files []rulefile.File) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		files = append(files, rulefile.File{Name: name, Text: []byte(texts[name])})
	}
	return files
}

// jsonRequest is a RateLimitRequest in JSON.
type jsonRequest struct {
	Domain      string
	Descriptors []struct {
		Entries []struct{ Key, Value string }
		Limit   *struct {
			RequestsPerUnit uint32
			Unit            string
		}
		HitsAddend *uint64 `json:",string"`
	}
	HitsAddend uint64
}

// requestOf returns the request that text is.
func requestOf(t *testing.T, text []byte) *rls.Request {
	t.Helper()
	var from jsonRequest
	require.NoError(t, json.Unmarshal(text, &from), "%s", text)
	r := &rls.Request{Domain: []byte(from.Domain), Hits: from.HitsAddend}
	for _, d := range from.Descriptors {
		var is rls.Descriptor
		for _, e := range d.Entries {
			is.Entries = append(is.Entries, rls.Entry{Key: []byte(e.Key), Value: []byte(e.Value)})
		}
		if is.HasHits = d.HitsAddend != nil; is.HasHits {
			is.Hits = *d.HitsAddend
		}
		if is.HasOwn = d.Limit != nil; is.HasOwn {
			is.Own = rls.Own{Requests: d.Limit.RequestsPerUnit, Unit: int32(rulefile.UnitOf(d.Limit.Unit))}
		}
		r.Descriptors = append(r.Descriptors, is)
	}
	return r
}

// textOf returns the answer in JSON, with sorted fields and without those that have their default.
func textOf(t *testing.T, a *rls.Answer, headers [3]string) string {
	t.Helper()
	codes := map[rls.Code]string{rls.OK: "OK", rls.OverLimit: "OVER_LIMIT"}
	var statuses []any
	for _, s := range a.Statuses {
		is := map[string]any{"code": codes[s.Code]}
		if s.Limited {
			of := map[string]any{"unit": strings.ToUpper(s.Unit.String())}
			if s.Requests > 0 {
				of["requestsPerUnit"] = s.Requests
			}
			if s.Name != "" {
				of["name"] = s.Name
			}
			is["currentLimit"], is["durationUntilReset"] = of, fmt.Sprintf("%ds", s.Reset)
		}
		if s.Remaining > 0 {
			is["limitRemaining"] = s.Remaining
		}
		statuses = append(statuses, is)
	}
	res := map[string]any{"overallCode": codes[a.Overall], "statuses": statuses}
	if a.Header >= 0 {
		s := a.Statuses[a.Header]
		var list []any
		for i, n := range []int64{int64(s.Requests), int64(s.Remaining), s.Reset} {
			list = append(list, map[string]any{"key": headers[i], "value": strconv.FormatInt(n, 10)})
		}
		res["responseHeadersToAdd"] = list
	}
	if a.Metadata != nil {
		res["dynamicMetadata"] = plain(a.Metadata)
	}
	text, err := json.Marshal(res)
	require.NoError(t, err)
	return string(text)
}

// plain returns v with maps in the place of structs.
func plain(v any) any {
	switch v := v.(type) {
	case strict.Struct:
		m := map[string]any{}
		for _, f := range v {
			m[f.Name] = plain(f.Value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	}
	return v
}

// optionsOf returns the options for settings of ratelimit, and the names of its headers.
func optionsOf(settings map[string]string) (o rls.Options, headers [3]string) {
	o = rls.Options{
		Together: settings["STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"] == "true", Shadow: settings["SHADOW_MODE"] == "true", Quota: settings["QUOTA_MODE"] == "true",
		Headers: settings["LIMIT_RESPONSE_HEADERS_ENABLED"] == "true", Metadata: settings["RESPONSE_DYNAMIC_METADATA"] == "true",
	}
	headers = [3]string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}
	for i, name := range []string{"LIMIT_LIMIT_HEADER", "LIMIT_REMAINING_HEADER", "LIMIT_RESET_HEADER"} {
		if is := settings[name]; is != "" {
			headers[i] = is
		}
	}
	return o, headers
}

// accident is the only row with another answer. In ratelimit an hour and a second share a counter if both begin at
// the same second, because its keys have the start of a window and not its length.
const accident = `override-0-4 at 1701705300: {"descriptors":[{"entries":[{"key":"a","value":"v2"}]},{"entries":[{"key":"remote_address","value":"v1"}],"limit":{"requestsPerUnit":2,"unit":"HOUR"}}],"domain":"rl"}`

// TestAnswersAreThoseOfRatelimit plays all rows that were recorded from envoyproxy/ratelimit.
func TestAnswersAreThoseOfRatelimit(t *testing.T) {
	names, err := filepath.Glob("testdata/envoy-*.jsonl.gz")
	require.NoError(t, err)
	require.Len(t, names, 24)
	rows := 0
	var differ []string
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".jsonl.gz"), func(t *testing.T) {
			var s *service
			var headers [3]string
			is := ""
			lines(t, name, func(line *recorded) {
				switch {
				case line.Case != "":
					is = line.Case
					c, _, _, faults := rls.Load(filesOf(line.Files), line.Settings["MERGE_DOMAIN_CONFIG"] == "true")
					require.NoError(t, faults.Err(), is)
					var o rls.Options
					o, headers = optionsOf(line.Settings)
					s = open(t, c, o)
				case line.Req != nil:
					rows++
					s.clock.Set(limit.Instant(line.At * 1e9))
					a, err := s.call(requestOf(t, line.Req))
					if line.Error != nil {
						require.EqualError(t, err, line.Error.Message)
						return
					}
					var want any
					require.NoError(t, json.Unmarshal(line.Res, &want))
					if text, ok := want.(string); ok { // POST /json has the text of an error
						require.Error(t, err, text)
						return
					}
					require.NoError(t, err)
					if got := textOf(t, a, headers); !jsonEqual(t, string(line.Res), got) {
						row := fmt.Sprintf("%s at %d: %s", is, line.At, line.Req)
						differ = append(differ, row)
						t.Logf("%s\n  want %s\n  got  %s", row, line.Res, got)
					}
				}
			})
		})
	}
	require.Equal(t, 8640, rows)
	require.Equal(t, []string{accident}, differ)
}

func jsonEqual(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	require.NoError(t, json.Unmarshal([]byte(a), &x))
	require.NoError(t, json.Unmarshal([]byte(b), &y))
	p, err := json.Marshal(x)
	require.NoError(t, err)
	q, err := json.Marshal(y)
	require.NoError(t, err)
	return string(p) == string(q)
}

// TestFilesAreThoseOfRatelimit loads files that ratelimit has accepted or refused.
func TestFilesAreThoseOfRatelimit(t *testing.T) {
	type file struct {
		Name  string
		Files map[string]string
		Merge bool
		OK    bool
		Error string
	}
	n := 0
	lines(t, "testdata/config-files.jsonl.gz", func(line *file) {
		n++
		_, _, _, faults := rls.Load(filesOf(line.Files), line.Merge)
		if (faults == nil) != line.OK {
			t.Errorf("%s: ratelimit: %t %s\n%v\n%v", line.Name, line.OK, line.Error, faults, line.Files)
		}
	})
	require.Equal(t, 342, n)
}
