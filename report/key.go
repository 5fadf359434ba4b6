package report

import (
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Key holds bytes of a client: a key, a name, an argument. In JSON it is a string, or {"b64":"..."}
// if it is not UTF-8.
type Key string

// inBase64 is the JSON form of a key that is not UTF-8.
type inBase64 struct {
	B64 *[]byte `json:"b64"`
}

// MarshalJSON implements [json.Marshaler].
func (k Key) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(k)) {
		return json.Marshal(string(k))
	}
	b := []byte(k)
	return json.Marshal(inBase64{&b})
}

var errKey = errors.New(`a key is a string or {"b64":"..."}`)

// UnmarshalJSON implements [json.Unmarshaler].
func (k *Key) UnmarshalJSON(text []byte) error {
	var s *string
	if err := json.Unmarshal(text, &s); err == nil && s != nil {
		*k = Key(*s)
		return nil
	}
	var b inBase64
	if err := json.Unmarshal(text, &b); err != nil || b.B64 == nil {
		return errKey
	}
	*k = Key(*b.B64)
	return nil
}
