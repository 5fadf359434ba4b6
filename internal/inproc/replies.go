package inproc

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

// These are replies that many tests expect.
const (
	OK     = "+OK\r\n"
	Queued = "+QUEUED\r\n"
	Pong   = "+PONG\r\n"
	// OOM is the reply while memory is full.
	OOM = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
	// ExecAbort is the reply to EXEC if a command before it could not be queued.
	ExecAbort = "-EXECABORT Transaction discarded because of previous errors.\r\n"
)

// Numbers returns all integers in an encoded reply, including the integers in nested replies. For
// the reply of a limiter these are five.
func Numbers(reply string) (all []int64) {
	for line := range strings.SplitSeq(reply, "\r\n") {
		if rest, ok := strings.CutPrefix(line, ":"); ok {
			if n, err := strconv.ParseInt(rest, 10, 64); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// Dialogue sends the first element of each step, and requires the replies to it to be the second
// element, which may have several replies.
func (c *Client) Dialogue(steps ...[2]string) {
	c.tb.Helper()
	for _, s := range steps {
		c.Send(s[0] + "\r\n")
		for rest := s[1]; rest != ""; {
			got := c.Reply()
			require.True(c.tb, strings.HasPrefix(rest, got), "%q brought %q, wanted %q", s[0], got, rest)
			rest = rest[len(got):]
		}
	}
}

// InfoNumber returns the value of a numeric field of INFO; see [Client.Info].
func (c *Client) InfoNumber(field string) int64 {
	c.tb.Helper()
	n, err := strconv.ParseInt(c.Info(field), 10, 64)
	require.NoError(c.tb, err)
	return n
}

// Listed returns the value of a numeric field in the line of CLIENT LIST for the client called
// name.
func (c *Client) Listed(name, field string) int64 {
	c.tb.Helper()
	for line := range strings.Lines(c.Do("CLIENT", "LIST")) {
		if !strings.Contains(line, " name="+name+" ") {
			continue
		}
		found := regexp.MustCompile(` ` + field + `=(-?\d+) `).FindStringSubmatch(line)
		require.NotNil(c.tb, found, "%s in %s", field, line)
		n, err := strconv.ParseInt(found[1], 10, 64)
		require.NoError(c.tb, err)
		return n
	}
	require.FailNow(c.tb, "no client "+name)
	return 0
}
