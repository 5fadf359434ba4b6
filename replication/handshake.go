package replication

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cellserver/cellserver/calendar"
	"github.com/cellserver/cellserver/persistence"
	"github.com/cellserver/cellserver/resp"
)

const (
	// maxLine is the maximum length in bytes of a reply line of a primary. Reply lines of Redis
	// are shorter than 200 bytes.
	maxLine = 4 << 10
	// maxBlank is the maximum number of empty lines before an answer to PSYNC. Redis sends one
	// each second while it prepares a snapshot.
	maxBlank = 10_000
	// shownLine is the maximum number of bytes of a reply that an error quotes.
	shownLine = 200
	// ourCapa is the word by which two cellservers recognize each other: it is in REPLCONF capa and
	// at the end of the answer to PSYNC.
	ourCapa = "cell1"
	// dataSetCapa begins the word of REPLCONF capa that has the ID of the replica's data set. The
	// answer to PSYNC then has the ID of the primary's data set.
	dataSetCapa = "data:"
	// tzdataCapa begins the word of REPLCONF capa that has the replica's release of tzdata. The answer
	// to PSYNC then has a word with the primary's release, which begins the same way.
	tzdataCapa = "tzdata:"
	// unknownDataSet is sent if the ID of the replica's data set is unknown.
	unknownDataSet = "?"
)

// greeting has the values that a replica sends to its primary in the handshake.
type greeting struct {
	user, password string
	port           int
	ip             string // announced address; "" if the primary is to use the address of the connection
	id             string // ID of the history that the replica has; "" if it needs a full resynchronization
	next           uint64 // number of the next byte that the replica needs, counted from 1
	dataSet        string // ID of the replica's data set; "" if unknown
	failover       bool   // whether the peer is asked to become the primary (FAILOVER)
}

// answer is the primary's answer to PSYNC.
type answer struct {
	line string // the whole line, without its line end
	// redis says that the peer is a Redis or Valkey. Then only line and full are valid.
	redis bool
	// full says that a full resynchronization follows, which begins at offset in the history id.
	// If full is false, the stream continues in the history id.
	full   bool
	id     string
	offset uint64
	// dataSet is the ID of the primary's data set, "" if the primary does not send it.
	dataSet string
	// tzdata is the primary's release of tzdata, "" if the primary does not send it.
	tzdata string
	// asked says that the peer may have received the request to take over. It is also valid if
	// there is an error.
	asked bool
}

// refusal is the Go error for an error reply of the peer.
type refusal struct {
	what string // name of the command that was refused
	line string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the primary answered %s with %s", r.what, quote(r.line))
}

// greet runs the handshake on a connection and returns the answer to PSYNC. It bounds and checks
// the replies of the peer. It has no timeout: the caller closes the connection if the peer takes
// too long.
func greet(w io.Writer, r *lineReader, g *greeting) (answer, error) {
	// An error reply to PING with one of these words does not end the handshake, because AUTH
	// follows. Redis does the same.
	line, err := say(w, r, "PING")
	if err != nil {
		return answer{}, err
	}
	if !strings.HasPrefix(line, "+") && !hasAnyPrefix(line, "-NOAUTH", "-NOPERM", "-ERR operation not permitted") {
		return answer{}, &refusal{"PING", line}
	}
	if g.password != "" {
		words := []string{"AUTH", g.password}
		if g.user != "" {
			words = []string{"AUTH", g.user, g.password}
		}
		if line, err = say(w, r, words...); err != nil {
			return answer{}, err
		}
		if !strings.HasPrefix(line, "+") {
			return answer{}, &refusal{"AUTH", line}
		}
	}
	if err := introduce(w, r, g); err != nil {
		return answer{}, err
	}
	return psync(w, r, g)
}

// introduce sends the port and the address that the primary shows for the replica, and the
// replica's capabilities. An error reply that begins with -ERR is ignored, as in Redis, because an
// old primary may not know one of the options.
func introduce(w io.Writer, r *lineReader, g *greeting) error {
	said := [][]string{{"REPLCONF", "listening-port", strconv.Itoa(g.port)}}
	if g.ip != "" {
		said = append(said, []string{"REPLCONF", "ip-address", g.ip})
	}
	said = append(said, []string{
		"REPLCONF", "capa", "eof", "capa", "psync2", "capa", ourCapa,
		"capa", dataSetCapa + cmp.Or(g.dataSet, unknownDataSet), "capa", tzdataCapa + calendar.Release(),
	})
	for _, words := range said {
		line, err := say(w, r, words...)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "-ERR") {
			return &refusal{strings.Join(words[:2], " "), line}
		}
	}
	return nil
}

// psync sends PSYNC and returns the answer. It asks for a full resynchronization if g has no ID. It
// skips up to maxBlank empty lines before the answer. After an error the answer only has asked set,
// if g asks the peer to take over.
func psync(w io.Writer, r *lineReader, g *greeting) (answer, error) {
	words := []string{"PSYNC", "?", "-1"}
	if g.id != "" {
		words[1], words[2] = g.id, strconv.FormatUint(g.next, 10)
	}
	if g.failover {
		words = append(words, "FAILOVER")
	}
	asked := answer{asked: g.failover}
	if err := send(w, words...); err != nil {
		return asked, err
	}
	for range maxBlank {
		line, err := r.next()
		if err != nil {
			return asked, fmt.Errorf("reading the answer to PSYNC: %w", err)
		}
		if line != "" {
			a, err := parseAnswer(line)
			a.asked = g.failover
			return a, err
		}
	}
	return asked, errors.New("the primary answers PSYNC with nothing but empty lines")
}

// parseAnswer parses line, an answer to PSYNC, which may be any text. The error is a [*refusal]
// if the peer does not agree to replicate.
func parseAnswer(line string) (answer, error) {
	a := answer{line: line}
	words := strings.Split(line, " ")
	a.full = words[0] == "+FULLRESYNC"
	if !a.full && words[0] != "+CONTINUE" {
		return a, &refusal{"PSYNC", line}
	}
	if words[len(words)-1] != ourCapa {
		a.redis = true
		return a, nil
	}
	words = words[1 : len(words)-1]
	if n := len(words) - 1; n >= 0 && strings.HasPrefix(words[n], tzdataCapa) {
		a.tzdata, words = words[n][len(tzdataCapa):], words[:n]
	}
	want := 1
	if a.full {
		want = 2
	}
	if len(words) == want+1 && persistence.IsHistory(words[want]) {
		a.dataSet, words = words[want], words[:want]
	}
	if len(words) != want || !persistence.IsHistory(words[0]) {
		return a, fmt.Errorf("the primary answered PSYNC with %s, which is out of form", quote(line))
	}
	a.id = words[0]
	if a.full {
		offset, err := strconv.ParseUint(words[1], 10, persistence.OffsetBits)
		if err != nil {
			return a, fmt.Errorf("the primary answered PSYNC with %s, which has no offset", quote(line))
		}
		a.offset = offset
	}
	return a, nil
}

// say sends a command and returns the line with its reply.
func say(w io.Writer, r *lineReader, words ...string) (string, error) {
	if err := send(w, words...); err != nil {
		return "", err
	}
	line, err := r.next()
	if err != nil {
		return "", fmt.Errorf("reading the answer to %s: %w", words[0], err)
	}
	return line, nil
}

func send(w io.Writer, words ...string) error {
	if _, err := w.Write(resp.AppendCommand(nil, words...)); err != nil {
		return fmt.Errorf("sending %s: %w", words[0], err)
	}
	return nil
}

// lineReader reads the reply lines of a primary, and calls onLine after each line.
type lineReader struct {
	r      *bufio.Reader
	onLine func()
}

// next reads a line and returns it without its line end. A line of more than maxLine bytes is an
// error.
func (l *lineReader) next() (string, error) {
	var line []byte
	for len(line) <= maxLine {
		c, err := l.r.ReadByte()
		switch {
		case err != nil:
			return "", err
		case c == '\n':
			l.onLine()
			return strings.TrimSuffix(string(line), "\r"), nil
		}
		line = append(line, c)
	}
	return "", fmt.Errorf("a line is longer than %d bytes", maxLine)
}

// quote returns at most the first shownLine bytes of a peer's line, quoted and escaped for a log.
func quote(line string) string {
	if len(line) > shownLine {
		line = line[:shownLine]
	}
	return strconv.Quote(line)
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
