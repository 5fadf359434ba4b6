package script

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Recorded is a step of a recorded scenario, or the line that begins a scenario, which has only its
// name.
type Recorded struct {
	Scenario string
	Line     int `json:"-"`

	At    string
	Cmd   []string
	Reply any
	Error *string
	// Ours replaces Reply and Error if this server intentionally replies something else. OursAny
	// has several replies, of which each is accepted, if the recording leaves a choice.
	Ours    any
	OursAny []any `json:"ours_any"`
}

// ReadRecorded reads a file of recorded scenarios, with one JSON value per line. If its name ends
// in .gz, the file is compressed.
func ReadRecorded(file string) (all []Recorded, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening a recording: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		r := Recorded{Line: n}
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber() // an int64 does not fit into a float64
		if err := d.Decode(&r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// Accepts reports whether v is a reply that the step accepts.
func (r *Recorded) Accepts(v Value) bool {
	switch {
	case r.OursAny != nil:
		for _, one := range r.OursAny {
			if equals(one, v) {
				return true
			}
		}
		return false
	case r.Ours != nil:
		return equals(r.Ours, v)
	case r.Error != nil:
		return v.Type == '-' && v.Text == *r.Error
	}
	return equals(r.Reply, v)
}

// Wanted returns the replies that the step accepts, as text for a message.
func (r *Recorded) Wanted() string {
	want := r.Reply
	switch {
	case r.OursAny != nil:
		want = r.OursAny
	case r.Ours != nil:
		want = r.Ours
	case r.Error != nil:
		return "-" + *r.Error
	}
	return fmt.Sprint(want)
}

// equals reports whether v is the recorded reply want. A status is equal to a string with the same
// text.
func equals(want any, v Value) bool {
	switch want := want.(type) {
	case nil:
		return v.Null
	case json.Number:
		return v.Type == ':' && strconv.FormatInt(v.Int, 10) == want.String()
	case string:
		return !v.Null && (v.Type == '$' || v.Type == '+') && v.Text == want
	case map[string]any:
		return v.Type == '-' && v.Text == want["error"]
	case []any:
		if v.Type != '*' || v.Null || len(v.Elems) != len(want) {
			return false
		}
		for i := range want {
			if !equals(want[i], v.Elems[i]) {
				return false
			}
		}
		return true
	}
	return false
}
