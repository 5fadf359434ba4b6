package persistence

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/cellserver/cellserver/entry"
	"github.com/cellserver/cellserver/keyspace/effect"
)

// line is a line of a dump: an entry of the base, or an effect of the log. Keys and strings that
// are not UTF-8 are in base64. So are the values of limiters, and of collections with elements that
// are not UTF-8.
type line struct {
	File     string  `json:"file"`
	Op       string  `json:"op"` // the kind of effect: "put", "patch", "delete" or "flush"
	DB       int     `json:"db"`
	Key      *string `json:"key,omitempty"`
	Key64    string  `json:"key_base64,omitempty"`
	Kind     int     `json:"kind,omitempty"`
	Type     string  `json:"type,omitempty"`
	Encoding string  `json:"encoding,omitempty"`
	// Expiry is in nanoseconds since 1970 by the server's clock; 0 if the key does not expire.
	Expiry  int64   `json:"expiry_ns,omitempty"`
	Value   *string `json:"value,omitempty"`
	Value64 string  `json:"value_base64,omitempty"`
	// Elements has the elements of a collection: texts, or pairs of field and value or of member
	// and score.
	Elements []any `json:"elements,omitempty"`
	// Delta64 is the delta of a patch. A patch without a delta changes only the expiry.
	Delta64 string `json:"delta_base64,omitempty"`
}

// Dump writes the content of the directory dir to w as lines of JSON: a line for each entry of the
// base, and then a line for each effect of the log in order. A reader gets the state if it carries
// out the lines in order. The server must not be running. Dump leaves out a torn end of the log. If
// a file is damaged, it writes a part of the content and returns an error.
func Dump(fsys FS, dir string, w io.Writer) error {
	m, unlock, err := claim(fsys, dir)
	if err != nil {
		return err
	}
	defer unlock()
	d := &dumper{w: bufio.NewWriter(w)}
	d.enc = json.NewEncoder(d.w)
	d.enc.SetEscapeHTML(false)
	// The buffer is flushed also after an error, because the part before the damage is useful.
	return errors.Join(d.all(fsys, dir, m), d.w.Flush())
}

// all writes the content of the files that m lists, up to a torn end of the log, or up to damage,
// which is the error.
func (d *dumper) all(fsys FS, dir string, m *manifest) error {
	if m.base != nil {
		d.file = m.base.name
		if err := readSnapshot(fsys, dir, *m.base, &Progress{}, new(atomic.Bool), d.Restore); err != nil {
			return err
		}
	}
	found, torn, err := inspectAll(fsys, dir, m)
	var bad *CorruptError
	if errors.As(err, &bad) && bad.Cuttable {
		torn = &Torn{File: bad.File}
	} else if err != nil {
		return err
	}
	rest := &Dir{found: found, torn: torn}
	for _, in := range rest.kept() {
		d.file = in.name
		if err := d.increment(fsys, in); err != nil {
			return err
		}
	}
	return err // the error may be the damage at which the last increment ended
}

// dumper writes lines. It has the methods of a [Sink] that receive data.
type dumper struct {
	mu   sync.Mutex // mu guards w and enc, because several goroutines read a base
	w    *bufio.Writer
	enc  *json.Encoder
	file string // name of the file that is being read
}

// increment writes the effects of the valid part of in.
func (d *dumper) increment(fsys FS, in *increment) error {
	f, err := fsys.Open(in.path)
	if err != nil {
		return fmt.Errorf("opening %s: %w", in.path, err)
	}
	defer f.Close()
	s := newScanner(f, in.valid, in.id)
	for s.off < in.valid {
		payload, err := s.next()
		if err != nil {
			return fmt.Errorf("reading %s again: %w", in.path, err)
		}
		if recordType(payload[0]) != typeEffects {
			continue
		}
		if err := eachEffect(payload[1:], d.Apply); err != nil {
			return fmt.Errorf("%s: offset before %d: %w", in.path, s.off, err)
		}
	}
	return nil
}

// Restore checks an entry of the base and writes a line for it: see [Sink].
func (d *dumper) Restore(db int, key []byte, e entry.Entry) error {
	if err := effect.CheckEntry(e); err != nil {
		return err
	}
	return d.write("put", db, key, e)
}

// Apply checks an effect of the log and writes a line for it: see [Sink].
func (d *dumper) Apply(e effect.Effect) error {
	if err := effect.Check(e); err != nil {
		return err
	}
	switch {
	case e.Flush:
		return d.write("flush", e.DB, nil, entry.Entry{})
	case e.Entry.Kind == entry.None:
		return d.write("delete", e.DB, e.Key, entry.Entry{})
	}
	op := "put"
	if e.Patch {
		op = "patch"
	}
	return d.write(op, e.DB, e.Key, e.Entry)
}

// write writes one line. e is the entry or patch of key; it is zero for a flush and a delete.
func (d *dumper) write(op string, db int, key []byte, e entry.Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := line{File: d.file, Op: op, DB: db}
	if op != "flush" {
		l.Key, l.Key64 = textOr64(key)
	}
	if e.Kind != entry.None {
		l.Kind, l.Type, l.Encoding = int(e.Kind), e.Kind.Type(), e.Kind.Encoding()
		if e.Expiry != entry.NoExpiry {
			l.Expiry = int64(e.Expiry)
		}
		switch {
		case op == "patch":
			l.Delta64 = base64.StdEncoding.EncodeToString(e.Value)
		case e.Kind == entry.String:
			l.Value, l.Value64 = textOr64(e.Value)
		default:
			if l.Elements = elementsOf(e); l.Elements == nil {
				l.Value64 = base64.StdEncoding.EncodeToString(e.Value)
			}
		}
	}
	return d.enc.Encode(l)
}

// textOr64 returns b in text if b is UTF-8. Otherwise text is nil, and b64 has b in base64.
func textOr64(b []byte) (text *string, b64 string) {
	if utf8.Valid(b) {
		s := string(b)
		return &s, ""
	}
	return nil, base64.StdEncoding.EncodeToString(b)
}
