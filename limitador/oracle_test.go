package limitador_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limit"
	"github.com/cellserver/cellserver/limitador"
	"github.com/cellserver/cellserver/ratelimit"
	"github.com/cellserver/cellserver/rls"
	"github.com/cellserver/cellserver/rls/rulefile"
)

// recorded is a line of a recording of Limitador.
type recorded struct {
	Case   string
	Limits json.RawMessage

	At          int64
	Op          string
	Namespace   string
	Descriptors []map[string]string
	Delta       uint64
	Headers     bool
	Res         result
}

// result is a recorded answer.
type result struct {
	OK        bool
	Panic     bool
	Error     string
	Limited   bool
	LimitName *string `json:"limit_name"`
	Headers   map[string]string
}

// lines calls f for each line of a recording.
func lines(t *testing.T, name string, f func(line *recorded)) {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	in := bufio.NewScanner(unzipped)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := new(recorded)
		require.NoError(t, json.Unmarshal(in.Bytes(), line))
		f(line)
	}
	require.NoError(t, in.Err())
}

// requestOf returns the request of a line.
func requestOf(line *recorded) *limitador.Request {
	r := &limitador.Request{Namespace: []byte(line.Namespace), Delta: line.Delta}
	for _, values := range line.Descriptors {
		var d rls.Descriptor
		for key, value := range values {
			d.Entries = append(d.Entries, rls.Entry{Key: []byte(key), Value: []byte(value)})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

var modes = map[string]ratelimit.Mode{"should": ratelimit.Whole, "check": ratelimit.Peek, "report": ratelimit.Force}

// TestAnswersAreThoseOfLimitador plays all rows that were recorded from Limitador.
func TestAnswersAreThoseOfLimitador(t *testing.T) {
	names, err := filepath.Glob("testdata/limitador-*.jsonl.gz")
	require.NoError(t, err)
	require.Len(t, names, 8)
	count := map[string]int{}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".jsonl.gz"), func(t *testing.T) {
			var s *service
			is := ""
			lines(t, name, func(line *recorded) {
				if line.Case != "" {
					is = line.Case
					c, _, faults := limitador.Load(rulefile.File{Name: "l.yaml", Text: line.Limits})
					if s = nil; faults == nil {
						s = open(t, c)
					} else {
						require.ErrorContains(t, faults.Err(), " is not supported")
						count["refused cases"]++
					}
					return
				}
				count["rows"]++
				switch {
				case s == nil:
					count["refused"]++
					return
				case line.Res.Panic || line.Res.Error != "":
					// A descriptor is not there, and a limit that looks at it does not apply. Limitador has charged nothing.
					require.NoError(t, s.config.Plan(requestOf(line), &s.plan))
					count["errors"]++
					return
				}
				s.clock.Set(limit.Instant(line.At * 1e9))
				a := s.call(t, requestOf(line), modes[line.Op])
				if line.Op == "report" {
					return
				}
				if why := s.differs(a, line); why != "" {
					count[why]++
					t.Logf("%s %s at %d: %v\n  %s\n  want %+v\n  got  %+v %s", why, is, line.At, line.Descriptors, line.Op, line.Res, a, a.Limits)
				}
			})
		})
	}
	require.Equal(t, map[string]int{
		"rows": 4656,
		// These cases have conditions beyond the language.
		"refused cases": 9, "refused": 214,
		"errors": 66,
		// The limit with the least remaining units is 0, and Limitador tells of a window that counts nothing.
		"reset of a limit of 0": 63,
		// The window begins with the request. Limitador looks at the reset before it charges.
		"reset of a new window": 70,
	}, count)
}

// differs returns in what the answer differs from that of a line, or "".
func (s *service) differs(a *limitador.Answer, line *recorded) string {
	if a.Limited != line.Res.Limited {
		return "limited"
	}
	if a.Limited {
		var named []string // the names of all limits that are over: Limitador answers with any of them
		for i, d := range s.decisions {
			if d.Denied {
				named = append(named, nameOf(s.plan.Calls[i].Limit.Name))
			}
		}
		if !slices.Contains(named, nameOf(line.Res.LimitName)) || !slices.Contains(named, nameOf(a.Limit.Name)) {
			return "name"
		}
	}
	if !line.Headers {
		return ""
	}
	h := line.Res.Headers
	if a.HasHeaders != (len(h) > 0) {
		return "headers"
	}
	if !a.HasHeaders {
		return ""
	}
	switch {
	case strconv.FormatInt(a.Remaining, 10) != h[limitador.HeaderRemaining]:
		return "remaining"
	case parts(string(a.Limits)) != parts(h[limitador.HeaderLimit]):
		return "limits"
	case strconv.FormatInt(a.Reset, 10) == h[limitador.HeaderReset]:
		return ""
	case strings.HasPrefix(string(a.Limits), "0,"):
		return "reset of a limit of 0"
	case !a.Limited && h[limitador.HeaderReset] == "0" && strings.HasPrefix(string(a.Limits), fmt.Sprint(a.Remaining+int64(line.Delta), ",")) && strings.Contains(string(a.Limits), fmt.Sprint(";w=", a.Reset)):
		return "reset of a new window"
	default:
		return "reset"
	}
}

func nameOf(name *string) string {
	if name == nil {
		return "-"
	}
	return *name
}

var first = regexp.MustCompile(`^\d+, `)

// parts returns the limits of a header, sorted.
func parts(header string) string {
	list := strings.Split(first.ReplaceAllString(header, ""), ", ")
	slices.Sort(list)
	return strings.Join(list, ", ")
}
