package servers

// These are the script and its bounds, for tests.
var (
	BeatScript      = beatScript
	PublishScript   = publishScript
	SummariesScript = summariesScript
)

const (
	MaxServers = maxServers
	MaxRecord  = maxRecord
)

// Text returns the stored form of r.
func (r *Record) Text() string { return r.text() }

// ParseBeat returns the servers in a reply of the script.
func ParseBeat(reply any) ([]Server, error) { return parseBeat(reply) }
