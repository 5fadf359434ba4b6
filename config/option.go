package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// option is the definition of one setting. Flags, environment, file, CONFIG GET and SET, --help and
// the sample file all use it.
type option struct {
	name string
	// alias is an older name of the option; "" if there is none.
	alias string
	// def is the default value, as it is written in a file.
	def string
	// kind says which values are valid.
	kind kind
	// mutable says that CONFIG SET may change the option.
	mutable bool
	// flagOnly says that only the command line may set the option to another value than def. A file must not have such a value.
	flagOnly bool
	// secret says that CONFIG GET shows the value, but that it is never logged.
	secret bool
	// show returns the part of a value that CONFIG GET may show, if the value may contain a
	// password; nil means the whole value.
	show func(value string) string
	doc  string
}

// kind is a set of valid values of an option.
type kind interface {
	// parse returns value in the form that CONFIG GET shows, or an error that says what is wrong
	// with it, in Redis' words where Redis has the option.
	parse(value string) (string, error)
	// hint returns the text that stands for a value in --help.
	hint() string
}

// integer is the kind of a whole number from least to most. unit is its unit, for --help.
type integer struct {
	least, most int64
	unit        string
}

func (k integer) parse(v string) (string, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return "", fmt.Errorf("argument couldn't be parsed into an integer")
	}
	if n < k.least || n > k.most {
		return "", fmt.Errorf("argument must be between %d and %d inclusive", k.least, k.most)
	}
	return strconv.FormatInt(n, 10), nil
}

func (k integer) hint() string {
	switch k.unit {
	case "s":
		return "seconds"
	case "ms":
		return "milliseconds"
	}
	return "number"
}

// octal is the kind of a file mode.
type octal struct{}

func (octal) parse(v string) (string, error) {
	if n, err := strconv.ParseUint(v, 8, 32); err != nil || n > 0o777 {
		return "", fmt.Errorf("argument couldn't be parsed into an octal value between 0 and 777")
	}
	return v, nil
}

func (octal) hint() string { return "octal" }

// boolean is the kind of an option that is yes or no.
type boolean struct{}

func (boolean) parse(v string) (string, error) {
	switch strings.ToLower(v) {
	case "yes", "no":
		return strings.ToLower(v), nil
	}
	return "", fmt.Errorf("argument must be 'yes' or 'no'")
}

func (boolean) hint() string { return "yes|no" }

// size is the kind of a number of bytes from least to most, with an optional unit, such as 1k for
// 1000 and 1kb for 1024.
type size struct {
	least, most int64
}

// errNoSize is the error of Redis for a text that is no size. errNoSizeUnit is for a number with an
// unknown unit, and adds an example.
var (
	errNoSize     = errors.New("argument must be a memory value")
	errNoSizeUnit = fmt.Errorf("%w such as 512mb: the units are b, k, kb, m, mb, g and gb", errNoSize)
)

var sizeUnits = []struct {
	suffix string
	factor int64
}{
	{"kb", 1 << 10},
	{"mb", 1 << 20},
	{"gb", 1 << 30},
	{"k", 1e3},
	{"m", 1e6},
	{"g", 1e9},
	{"b", 1},
}

func (k size) parse(v string) (string, error) {
	number, factor := strings.ToLower(v), int64(1)
	for _, u := range sizeUnits {
		if cut, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = cut, u.factor
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case (err != nil || n < 0) && v != "" && '0' <= v[0] && v[0] <= '9':
		return "", errNoSizeUnit
	case err != nil || n < 0:
		return "", errNoSize
	}
	if n > k.most/factor || n*factor < k.least {
		return "", fmt.Errorf("argument must be between %d and %d inclusive", k.least, k.most)
	}
	return strconv.FormatInt(n*factor, 10), nil
}

func (size) hint() string { return "bytes" }

// sizeOrShare is the kind of a number of bytes, or of a percentage of another number of bytes.
type sizeOrShare struct{ size }

func (k sizeOrShare) parse(v string) (string, error) {
	if share, ok := strings.CutSuffix(v, "%"); ok {
		n, err := strconv.ParseUint(share, 10, 32)
		switch {
		case err != nil:
			return "", fmt.Errorf("argument must be a memory or percent value")
		case n > 100:
			return "", fmt.Errorf("percentage argument must be less or equal to 100")
		}
		return strconv.FormatUint(n, 10) + "%", nil
	}
	v, err := k.size.parse(v)
	if errors.Is(err, errNoSize) {
		err = fmt.Errorf("argument must be a memory or percent value")
	}
	return v, err
}

func (sizeOrShare) hint() string { return "bytes|percent" }

// of returns the number of bytes for v, which parse has accepted. whole is the number of bytes to
// which a percentage refers.
func (sizeOrShare) of(v string, whole int64) int64 {
	if share, ok := strings.CutSuffix(v, "%"); ok {
		return whole / 100 * number(share)
	}
	return number(v)
}

// choice is the kind of an option that is one of a few words.
type choice []string

func (k choice) parse(v string) (string, error) {
	for _, w := range k {
		if strings.EqualFold(v, w) {
			return w, nil
		}
	}
	return "", fmt.Errorf("argument(s) must be one of the following: %s", strings.Join(k, ", "))
}

func (k choice) hint() string { return strings.Join(k, "|") }

// evictionPolicy is the kind of maxmemory-policy. This server has a single policy.
type evictionPolicy struct{}

func (evictionPolicy) parse(v string) (string, error) {
	if !strings.EqualFold(v, "noeviction") {
		return "", errors.New("argument must be noeviction: this server evicts no key, since that would reset a limit")
	}
	return "noeviction", nil
}

func (evictionPolicy) hint() string { return "noeviction" }

// supervision is the kind of supervised: no, systemd or auto. The value upstart of Redis is refused
// with an error of its own.
type supervision struct{}

func (supervision) parse(v string) (string, error) {
	if strings.EqualFold(v, "upstart") {
		return "", errors.New("argument must be no, systemd or auto: this server does not support upstart")
	}
	return choice{"no", "systemd", "auto"}.parse(v)
}

func (supervision) hint() string { return "no|systemd|auto" }

// text is the kind of any text without a NUL and a line end.
type text struct{}

func (text) parse(v string) (string, error) {
	if strings.ContainsAny(v, "\x00\r\n") {
		return "", fmt.Errorf("argument must be a single line of text")
	}
	return v, nil
}

func (text) hint() string { return "text" }

// words is the kind of a list of words.
type words struct{}

func (words) parse(v string) (string, error) {
	if _, err := (text{}).parse(v); err != nil {
		return "", err
	}
	return strings.Join(strings.Fields(v), " "), nil
}

func (words) hint() string { return "words" }

// seconds returns the duration of v, a number of seconds that integer has accepted.
func seconds(v string) time.Duration {
	n, _ := strconv.ParseInt(v, 10, 64)
	return time.Duration(n) * time.Second
}

// number returns the number of v, which integer or size has accepted.
func number(v string) int64 {
	n, _ := strconv.ParseInt(v, 10, 64)
	return n
}
