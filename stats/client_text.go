package stats

import (
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// ClientText holds bytes of a client: a key, a name, an argument. In JSON it is a string, or {"b64":"..."}
// if it is not UTF-8.
type ClientText string

// inBase64 is the JSON form of a text that is not UTF-8.
type inBase64 struct {
	B64 *[]byte `json:"b64"`
}

// MarshalJSON implements [json.Marshaler].
func (t ClientText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	b := []byte(t)
	return json.Marshal(inBase64{&b})
}

var errClientText = errors.New(`a key is a string or {"b64":"..."}`)

// UnmarshalJSON implements [json.Unmarshaler].
func (t *ClientText) UnmarshalJSON(text []byte) error {
	var s *string
	if err := json.Unmarshal(text, &s); err == nil && s != nil {
		*t = ClientText(*s)
		return nil
	}
	var b inBase64
	if err := json.Unmarshal(text, &b); err != nil || b.B64 == nil {
		return errClientText
	}
	*t = ClientText(*b.B64)
	return nil
}
