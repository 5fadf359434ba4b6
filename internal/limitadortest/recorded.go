// Package limitadortest reads recordings of Limitador for tests, and compares answers with the recorded ones.
package limitadortest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/limitador"
)

// Case is a case of a recording: a limits file and requests that begin without counters.
type Case struct {
	Name string
	// Limits is the text of the limits file.
	Limits []byte
	Rows   []Row
}

// Row is a request with its answer.
type Row struct {
	// At is the Unix second of the request.
	At int64
	// Op is should, check or report.
	Op          string
	Namespace   string
	Descriptors []map[string]string
	Delta       uint64
	// Headers says that the answer was to have header fields.
	Headers bool
	Res     struct {
		Panic     bool
		Error     string
		Limited   bool
		LimitName *string `json:"limit_name"`
		Headers   map[string]string
	}
}

// Failed reports whether Limitador has panicked or given an error. It has charged nothing then.
func (r *Row) Failed() bool { return r.Res.Panic || r.Res.Error != "" }

// recordings is the number of recordings in a folder.
const recordings = 8

// Cases returns the cases of all recordings in a folder.
func Cases(t require.TestingT, folder string) (cases []Case) {
	names, err := filepath.Glob(filepath.Join(folder, "limitador-*.jsonl.gz"))
	require.NoError(t, err)
	require.Len(t, names, recordings)
	for _, name := range names {
		cases = append(cases, read(t, name)...)
	}
	return cases
}

// read returns the cases of a recording.
func read(t require.TestingT, name string) (cases []Case) {
	file, err := os.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)
	in := bufio.NewScanner(unzipped)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var line struct {
			Case   string
			Limits json.RawMessage
			Row
		}
		require.NoError(t, json.Unmarshal(in.Bytes(), &line))
		if line.Case != "" {
			cases = append(cases, Case{Name: line.Case, Limits: line.Limits})
			continue
		}
		last := &cases[len(cases)-1]
		last.Rows = append(last.Rows, line.Row)
	}
	require.NoError(t, in.Err())
	return cases
}

// These are the intended differences of header fields.
const (
	// ZeroReset is that of the reset, if the limit with the least remaining units is 0: Limitador tells of a window that
	// counts nothing.
	ZeroReset = "reset of a limit of 0"
	// NewReset is that of the reset, if the window begins with the request: Limitador looks at the reset before it charges.
	NewReset = "reset of a new window"
)

// Differs returns in what an answer differs from that of r, or "". limited says that the request is denied, and fields has
// the header fields of the answer, of which there are none if the answer has none.
func (r *Row) Differs(limited bool, fields map[string]string) string {
	want := r.Res.Headers
	switch {
	case limited != r.Res.Limited:
		return "limited"
	case !r.Headers:
		return ""
	case len(fields) != len(want):
		return "headers"
	case len(want) == 0:
		return ""
	case fields[limitador.HeaderRemaining] != want[limitador.HeaderRemaining]:
		return "remaining"
	case !slices.Equal(limits(fields), limits(want)):
		return "limits"
	}
	of, reset := fields[limitador.HeaderLimit], fields[limitador.HeaderReset]
	switch {
	case reset == want[limitador.HeaderReset]:
		return ""
	case strings.HasPrefix(of, "0,"):
		return ZeroReset
	case !limited && want[limitador.HeaderReset] == "0" && r.isFirst(of, fields[limitador.HeaderRemaining]) && strings.Contains(of, ";w="+reset):
		return NewReset
	}
	return "reset"
}

// isFirst reports whether remaining is what remains of the limit that the header of begins with after its first request.
func (r *Row) isFirst(of, remaining string) bool {
	var most, rest uint64
	_, err := fmt.Sscan(strings.Replace(of, ",", " ", 1), &most)
	if err == nil {
		_, err = fmt.Sscan(remaining, &rest)
	}
	return err == nil && rest+r.Delta == most
}

var first = regexp.MustCompile(`^\d+, `)

// limits returns the limits of a header, which come in any order.
func limits(fields map[string]string) []string {
	list := strings.Split(first.ReplaceAllString(fields[limitador.HeaderLimit], ""), ", ")
	slices.Sort(list)
	return list
}
