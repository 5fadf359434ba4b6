package report

import "github.com/cellserver/cellserver/stats"

// Key holds bytes of a client: a key, a name, an argument. Its form in JSON is that of [stats.ClientText].
type Key string

// MarshalJSON implements [json.Marshaler].
func (k Key) MarshalJSON() ([]byte, error) {
	return stats.ClientText(k).MarshalJSON() //nolint:wrapcheck // it is the same text
}

// UnmarshalJSON implements [json.Unmarshaler].
func (k *Key) UnmarshalJSON(text []byte) error {
	return (*stats.ClientText)(k).UnmarshalJSON(text) //nolint:wrapcheck // it is the same text
}
