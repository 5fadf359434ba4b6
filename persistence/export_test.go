package persistence

// Tick does the work of one second.
func (l *Log) Tick() { l.tick() }

// Note appends a record of any type and writes it.
func (l *Log) Note(kind byte, body []byte) error {
	return l.noteNow(func() {
		l.record(recordType(kind), func(dst []byte) []byte { return append(dst, body...) })
	})
}

// ParseManifest checks a manifest.
func ParseManifest(file string, content []byte) error {
	_, err := parseManifest(file, content)
	return err
}

// ManifestName is the name of the manifest.
const ManifestName = manifestName

// HeaderSize is the length of the header of every file.
const HeaderSize = headerSize

// Due decides when an fsync begins, and Expected for how many callers.
var (
	Due      = due
	Expected = expected
)
