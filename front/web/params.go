package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Params are the parameters of a check.
type Params struct {
	// Key has the parts of the key: one or more, at most [MaxParts].
	Key []Part
	// Hits is the quantity; it is 1 without the parameter. Deny is the status of a denial; it is 429 without the
	// parameter.
	Hits int64
	Deny int
}

// Part is one part of a key. Text is the name of a header field in canonical form, or a fixed text.
type Part struct {
	Source Source
	Text   string
}

// Source says where a part of a key comes from.
type Source uint8

// These are the sources of a part.
const (
	Fixed  Source = iota // the part is the text itself
	Header               // the part is a header field of the request
	IP                   // the part is the address of the client
	URI                  // the part is the path and the query of the original request
	Path                 // the part is the path of the original request
	Method               // the part is the method of the original request
	Host                 // the part is the host of the original request
)

// sources maps each word for a source without an argument to the source.
var sources = map[string]Source{"ip": IP, "uri": URI, "path": Path, "method": Method, "host": Host}

// minDeny and maxDeny are the bounds of the parameter deny: the statuses of errors.
const minDeny, maxDeny = 400, 599

// ParseParams parses parameters as they are in a path: name=value, joined by &, and percent-encoded after that. A plus
// sign stands for itself. Only key is required, and only key may occur several times. Its value is ip, uri, path,
// method, host, header: with a name, text: with any text, or another text without a colon. A value with a colon must
// begin with header: or text:, so a misspelled word is an error and not a text. The error is for the operator, because
// the configuration of the gateway has the path.
func ParseParams(raw string) (Params, error) {
	p := Params{Hits: 1, Deny: http.StatusTooManyRequests}
	var hits, deny bool
	for pair := range strings.SplitSeq(raw, "&") {
		name, escaped, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(escaped)
		if !ok || err != nil {
			return Params{}, fmt.Errorf("parameter %q is not of the form name=value", pair)
		}
		switch name {
		case "key":
			part, err := parsePart(value)
			if err != nil {
				return Params{}, err
			}
			if p.Key = append(p.Key, part); len(p.Key) > MaxParts {
				return Params{}, fmt.Errorf("a key has at most %d parts", MaxParts)
			}
		case "hits":
			if p.Hits, err = parseInteger(value); err != nil || hits {
				return Params{}, fmt.Errorf("parameter hits is %q, and must be one integer", value)
			}
			hits = true
		case "deny":
			status, err := parseInteger(value)
			if err != nil || status < minDeny || status > maxDeny || deny {
				return Params{}, fmt.Errorf("parameter deny is %q, and must be one status from %d to %d", value, minDeny, maxDeny)
			}
			p.Deny, deny = int(status), true
		default:
			return Params{}, fmt.Errorf("there is no parameter %q: key, hits and deny are known", name)
		}
	}
	if p.Key == nil {
		return Params{}, fmt.Errorf("the parameter key is missing, such as key=ip")
	}
	return p, nil
}

func parsePart(value string) (Part, error) {
	if s, ok := sources[value]; ok {
		return Part{Source: s}, nil
	}
	word, rest, colon := strings.Cut(value, ":")
	switch {
	case !colon:
		return Part{Source: Fixed, Text: value}, nil
	case word == "text":
		return Part{Source: Fixed, Text: rest}, nil
	case word != "header":
		return Part{}, fmt.Errorf("key is %q: a text with a colon is text:%s", value, value)
	case !isToken(rest):
		return Part{}, fmt.Errorf("key is %q, which names no header field", value)
	}
	name := http.CanonicalHeaderKey(rest)
	if name == "Host" {
		return Part{}, fmt.Errorf("key is %q: use key=host", value)
	}
	return Part{Source: Header, Text: name}, nil
}

// parseInteger parses a decimal integer. A minus is the only sign that it accepts.
func parseInteger(text string) (int64, error) {
	if strings.HasPrefix(text, "+") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(text, 10, 64) //nolint:wrapcheck // the callers only look whether there is one
}

// isToken reports whether name can be the name of a header field (RFC 9110, section 5.6.2).
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// check has the parts of the path of a check.
type check struct {
	policy string
	params Params
	// rest is the part of the path after the parameters, not decoded: "" or a path that begins with
	// a slash.
	rest string
}

// checkPath is the beginning of the path of every check.
const checkPath = "/v1/check/"

// parseCheck parses path, the path of a request without decoding, which begins with checkPath. The first segment after
// that is the name of the policy, and the second the parameters; the other segments may be any text.
func parseCheck(raw string) (check, error) {
	name, behind, ok := strings.Cut(raw[len(checkPath):], "/")
	if !ok {
		return check{}, fmt.Errorf("the path is not %s{policy}/{parameters}", checkPath)
	}
	c := check{}
	var err error
	if c.policy, err = url.PathUnescape(name); err != nil || c.policy == "" {
		return check{}, fmt.Errorf("the path has no name of a policy")
	}
	raw = behind
	if slash := strings.IndexByte(behind, '/'); slash >= 0 {
		raw, c.rest = behind[:slash], behind[slash:]
	}
	c.params, err = ParseParams(raw)
	return c, err
}
