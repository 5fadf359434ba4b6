package report

import "github.com/cellserver/cellserver/stats"

// Key holds bytes of a client: a key, a name, an argument. It has the same form in JSON as [stats.ClientText].
type Key string

// MarshalJSON encodes k as [stats.ClientText] does.
func (k Key) MarshalJSON() ([]byte, error) {
	return stats.ClientText(k).MarshalJSON() //nolint:wrapcheck // it is the same text
}

// UnmarshalJSON decodes text as [stats.ClientText] does.
func (k *Key) UnmarshalJSON(text []byte) error {
	return (*stats.ClientText)(k).UnmarshalJSON(text) //nolint:wrapcheck // it is the same text
}
