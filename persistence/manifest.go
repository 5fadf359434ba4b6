package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"
)

// manifestName is the name of the manifest, the file that lists the files in use.
const manifestName = "cellserver.manifest"

// These are the names of this package's files, as patterns for [filepath.Match].
const (
	incrementPattern = "incr.*.log"
	basePattern      = "base.*.snap"
)

// part describes a file that the manifest lists.
type part struct {
	name string // name of the file, without directory
	id   uint64 // id in the header of the file
	seq  uint64 // sequence number, which is a part of the name
	base bool   // whether the file is a base; otherwise it is an increment
}

// manifest has the content of a manifest: at most one base, and the increments since the base, in
// order.
type manifest struct {
	base       *part
	increments []part
	dataSet    DataSet // the data set to which the state in the files belongs
	// nextSeq is the sequence number of the next file. It is greater than the number of any listed
	// file.
	nextSeq uint64
}

// parts returns all files that the manifest lists: the base, if there is one, and then the
// increments.
func (m *manifest) parts() []part {
	var all []part
	if m.base != nil {
		all = append(all, *m.base)
	}
	return append(all, m.increments...)
}

// encode returns the content of the file: a line with the version, a line for each part, and a line
// with the checksum of the lines before it. For example:
//
//	version 1
//	file base.3.snap seq 3 type b id 00f1e2d3c4b5a697 dataset 5f1c...
//	file incr.4.log seq 4 type i id 8899aabbccddeeff dataset 5f1c...
//	checksum 1a2b3c4d
//
// In the files of a restored data set, "restored yes" follows the id of the data set.
func (m *manifest) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "version %d\n", formatVersion)
	for _, p := range m.parts() {
		kind := "i"
		if p.base {
			kind = "b"
		}
		fmt.Fprintf(&b, "file %s seq %d type %s id %016x", p.name, p.seq, kind, p.id)
		if m.dataSet.ID != "" { // older versions ignore keys that they do not know
			fmt.Fprintf(&b, " dataset %s", m.dataSet.ID)
			if m.dataSet.Restored {
				b.WriteString(" restored " + restoredYes)
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "checksum %08x\n", crc32.Checksum(b.Bytes(), castagnoli))
	return b.Bytes()
}

// maxManifest is the maximum size of the manifest in bytes. A thousand increments take a tenth of
// it.
const maxManifest = 1 << 20

// maxSeq is the maximum sequence number in a manifest. It is far below the maximum of uint64, so
// that there is always a next one.
const maxSeq = 1 << 62

// maxLine is the maximum length of a line in bytes (Redis: MANIFEST_MAX_LINE).
const maxLine = 1024

// parseManifest parses the content of the manifest called file. The error begins with the name of
// the file and the number of the line.
func parseManifest(file string, content []byte) (*manifest, error) {
	bad := func(line int, format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s. Nothing was loaded; restore the directory from a backup: an older manifest does not list the newer files", file, line, fmt.Sprintf(format, args...))
	}
	if len(content) == 0 {
		return nil, bad(1, "the manifest is empty")
	}
	if content[len(content)-1] != '\n' {
		return nil, bad(bytes.Count(content, []byte("\n"))+1, "the last line does not end")
	}
	lines := strings.Split(string(content[:len(content)-1]), "\n")
	m, sum := &manifest{nextSeq: 1}, 0
	for i, line := range lines {
		n := i + 1
		var err error
		switch {
		case line == "":
			err = errors.New("a blank line")
		case len(line) > maxLine:
			err = fmt.Errorf("a line of %d bytes, which is longer than %d", len(line), maxLine)
		case i == 0:
			err = checkVersion(line)
		case i == len(lines)-1:
			err = checkSum(line, content[:sum])
		default:
			err = m.addLine(line)
		}
		if err != nil {
			return nil, bad(n, "%v", err)
		}
		sum += len(line) + 1
	}
	if len(lines) < 3 {
		return nil, bad(len(lines), "the manifest names no file")
	}
	return m, nil
}

// checkVersion checks the first line of a manifest.
func checkVersion(line string) error {
	v, ok := strings.CutPrefix(line, "version ")
	if !ok {
		return errors.New("the first line must give the version")
	}
	if v != strconv.Itoa(formatVersion) {
		return fmt.Errorf("format version %q is unknown to this program, which knows version %d", v, formatVersion)
	}
	return nil
}

// checkSum checks the last line of a manifest. before has all bytes before the line.
func checkSum(line string, before []byte) error {
	want := fmt.Sprintf("checksum %08x", crc32.Checksum(before, castagnoli))
	if line != want {
		return errors.New("the last line is not the checksum of the lines before it: the manifest was changed or cut off")
	}
	return nil
}

// addLine adds the file that line describes. It ignores unknown keys. The error says what is wrong
// with the line.
func (m *manifest) addLine(line string) error {
	fields := strings.Split(line, " ")
	if len(fields)%2 != 0 {
		return errors.New("a line must be pairs of a key and a value")
	}
	values := make(map[string]string)
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "" || fields[i+1] == "" {
			return errors.New("a line must be pairs of a key and a value with single spaces between them")
		}
		if _, twice := values[fields[i]]; twice {
			return fmt.Errorf("the key %q occurs twice", fields[i])
		}
		values[fields[i]] = fields[i+1]
	}
	p := part{name: values["file"]}
	if p.name == "" {
		return errors.New("a line without a file")
	}
	if p.name != filepath.Base(p.name) || p.name == "." || p.name == ".." || strings.ContainsAny(p.name, `/\`) {
		return fmt.Errorf("the file name %q is a path", p.name)
	}
	var err error
	if p.seq, err = strconv.ParseUint(values["seq"], 10, 64); err != nil || p.seq == 0 || p.seq > maxSeq {
		return fmt.Errorf("%q is not a sequence number", values["seq"])
	}
	if p.id, err = strconv.ParseUint(values["id"], 16, 64); err != nil || p.id == 0 {
		return fmt.Errorf("%q is not an id", values["id"])
	}
	switch values["type"] {
	case "b":
		p.base = true
	case "i":
	default:
		return fmt.Errorf("%q is not a type", values["type"])
	}
	if id, ok := values["dataset"]; ok {
		if !IsHistory(id) || m.dataSet.ID != "" && m.dataSet.ID != id {
			return fmt.Errorf("%q is not the id of the data set", id)
		}
		m.dataSet = DataSet{ID: id, Restored: values["restored"] == restoredYes}
	}
	return m.add(p)
}

// restoredYes is the value of the key "restored" in a restored data set. Other values are ignored.
const restoredYes = "yes"

// add adds p. It returns an error if m already has a file with the name or id of p, or if p is out
// of order.
func (m *manifest) add(p part) error {
	for _, q := range m.parts() {
		if q.name == p.name || q.id == p.id {
			return fmt.Errorf("the file %q occurs twice", p.name)
		}
	}
	if p.base {
		if m.base != nil {
			return errors.New("a second base")
		}
		if len(m.increments) > 0 {
			return errors.New("a base after an increment")
		}
		m.base = &p
	} else {
		if n := len(m.increments); n > 0 && p.seq <= m.increments[n-1].seq {
			return fmt.Errorf("sequence number %d does not come after %d", p.seq, m.increments[n-1].seq)
		}
		m.increments = append(m.increments, p)
	}
	m.nextSeq = max(m.nextSeq, p.seq+1)
	return nil
}

// readManifest reads and returns the manifest of the directory dir. It returns nil without an error
// if there is none.
func readManifest(fsys FS, dir string) (*manifest, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	found := false
	for _, n := range names {
		found = found || n == manifestName
	}
	if !found {
		return nil, nil
	}
	path := filepath.Join(dir, manifestName)
	content, err := readSmall(fsys, path, maxManifest)
	if err != nil {
		return nil, err
	}
	return parseManifest(path, content)
}

// writeManifest makes m the manifest of the directory dir. Once it has returned nil, m is in force
// even after a crash. After an *unsureError either m or the old manifest may be in force. After any
// other error the old manifest is in force.
func writeManifest(fsys FS, dir string, m *manifest) error {
	path := filepath.Join(dir, manifestName)
	tmp := path + tmpSuffix
	content := m.encode()
	if len(content) > maxManifest {
		return fmt.Errorf("%s would list %d files, too many to read", path, len(m.parts()))
	}
	if err := writeDurable(fsys, tmp, content); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, path); err != nil {
		return &unsureError{fmt.Errorf("switching the manifest: %w", err)}
	}
	if err := fsys.SyncDir(dir); err != nil {
		return &unsureError{fmt.Errorf("syncing %s: %w", dir, err)}
	}
	return nil
}

// unsureError is the error for a failure after which it is unknown which of two manifests a crash
// would leave.
type unsureError struct{ err error }

// Error returns the text of the underlying error.
func (e *unsureError) Error() string { return e.err.Error() }

// Unwrap returns the underlying error.
func (e *unsureError) Unwrap() error { return e.err }

// tmpSuffix is the suffix of the name of a manifest that is not in use yet.
const tmpSuffix = ".tmp"

// writeDurable creates a file with that content and makes the content durable, but not the name.
func writeDurable(fsys FS, path string, content []byte) error {
	f, err := fsys.Create(path)
	if err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	if err = writeAll(f, content); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// readSmall returns the content of the file at path. A file of more than most bytes is an error.
func readSmall(fsys FS, path string, most int64) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if size > most {
		return nil, fmt.Errorf("%s:1: %d bytes are more than a file of this kind has", path, size)
	}
	content := make([]byte, size)
	if n, err := f.ReadAt(content, 0); int64(n) < size {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return content, nil
}
