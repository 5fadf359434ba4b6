package calendar

import (
	_ "embed" // for the two files
	"encoding/binary"
	"strings"
	"time"
)

var (
	//go:embed tzdata.zip
	archive string
	//go:embed RELEASE
	release string
)

// Release returns the release of tzdata that is part of the program, such as "2025c".
func Release() string { return strings.TrimSpace(release) }

// MaxName is the maximum length in bytes of the name of a zone.
const MaxName = 64

// Load returns the zone with the given IANA name, in upper or lower case. ok is false if the release
// does not have the zone. UTC is nil, which is valid. Load reads the rules again at each call, which
// takes some microseconds and allocates memory. So a caller that needs a zone often keeps it.
func Load(name string) (z *Zone, ok bool) {
	if strings.EqualFold(name, "UTC") {
		return nil, true
	}
	for is, data := range files {
		if strings.EqualFold(is, name) {
			rules, err := time.LoadLocationFromTZData(is, []byte(data))
			return &Zone{name: is, rules: rules}, err == nil
		}
	}
	return nil, false
}

// Known returns the zone with the given name in exactly this form, as [Zone.Name] returns it. If the
// release does not have the zone, as a later one may, the result has the name and the offset 0. A
// name without characters is UTC.
func Known(name string) *Zone {
	if name == "" {
		return nil
	}
	if z, ok := Load(name); ok && z.Name() == name {
		return z
	}
	return &Zone{name: name}
}

// Names calls yield with the name of each zone of the release, in ascending order, until yield
// returns false.
func Names(yield func(name string) bool) {
	for name := range files {
		if !yield(name) {
			return
		}
	}
}

// These are the sizes of headers in a zip archive, without the parts of variable length.
const (
	endSize       = 22 // size at the end of an archive without a comment
	directorySize = 46
	fileSize      = 30
)

// files calls yield with the name and the content of each file of the archive, in its order, until
// yield returns false. The archive has no comment, and its files are not compressed; a test checks
// that.
func files(yield func(name, data string) bool) {
	u16 := func(s string, at int) int { return int(binary.LittleEndian.Uint16([]byte(s[at : at+2]))) }
	u32 := func(s string, at int) int { return int(binary.LittleEndian.Uint32([]byte(s[at : at+4]))) }
	end := archive[len(archive)-endSize:]
	directory := archive[u32(end, 16):]
	for range u16(end, 10) {
		size, name := u32(directory, 24), directory[directorySize:directorySize+u16(directory, 28)]
		file := archive[u32(directory, 42):]
		data := file[fileSize+u16(file, 26)+u16(file, 28):][:size]
		if !yield(name, data) {
			return
		}
		directory = directory[directorySize+u16(directory, 28)+u16(directory, 30)+u16(directory, 32):]
	}
}
