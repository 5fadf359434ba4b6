package persistence

// Tick does what the log does every second.
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

// Due is when an fsync begins, Expected for how many.
var (
	Due      = due
	Expected = expected
)
