package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// The reasons that are ours. The others are the words that the engine's error replies begin
// with.
const (
	// Starting: no node has answered yet.
	Starting = "starting"
	// Timeout: no answer within the time limit.
	Timeout = "timeout"
	// Refused: nobody listens there.
	Refused = "refused"
	// Unreachable: no way there, or no such name.
	Unreachable = "unreachable"
	// Broken: the connection ended before the answer.
	Broken = "broken"
	// Malformed: the answer is none.
	Malformed = "malformed"
	// Overload: too much waits for the node already.
	Overload = "overload"
	// Closing: the server stops.
	Closing = "closing"
	// Untrusted: no TLS handshake.
	Untrusted = "TLS"
	// Unknown is an error reply that begins with no word that is known.
	Unknown = "ERR"
)

// replyWords are the words of error replies that say that nothing was done, and whether the
// node is then of no use for others, too.
var replyWords = map[string]bool{
	"LOADING": true, "MASTERDOWN": true, "CLUSTERDOWN": true, "BUSY": true, "NOAUTH": true, "WRONGPASS": true,
	"READONLY": false, "OOM": false, "NOREPLICAS": false, "MISCONF": false, "NOPERM": false, "WRONGTYPE": false,
	"TRYAGAIN": false, "CROSSSLOT": false, "MOVED": false, "ASK": false, "NOSCRIPT": false, "DENIED": false,
}

// replied is the error of an error reply. Only its word is kept: replies may repeat keys.
func replied(text string) *Error {
	word, _, _ := strings.Cut(text, " ")
	if _, known := replyWords[word]; known {
		return &Error{Reason: word, NotDone: true}
	}
	// Before Redis 7 an error within a script stands in the middle of another.
	for field := range strings.FieldsSeq(text) {
		field = strings.TrimLeft(field, "-")
		if _, known := replyWords[field]; known {
			return &Error{Reason: field, NotDone: true}
		}
	}
	if strings.Contains(text, "max number of clients") {
		return &Error{Reason: Refused, Text: "the store has its maximum of clients", NotDone: true}
	}
	return &Error{Reason: Unknown, Text: "the store replied an error that is unknown"}
}

// useless reports whether the node is of no use for anybody.
func (e *Error) useless() bool {
	if down, known := replyWords[e.Reason]; known {
		return down
	}
	return e.Reason != Unknown
}

// isReply reports whether err is what the node replied, and not the lack of a reply.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// failed is the error of a connection, or of one that was not made. sent says that bytes of
// what was asked may have left.
func failed(err error, sent bool) *Error {
	if isReply(err) { // to the password, before anything was sent
		e := replied(lastReply(err))
		e.NotDone = e.NotDone || !sent
		return e
	}
	e := &Error{Reason: reasonOf(err), NotDone: !sent}
	var dial *dialError
	if errors.As(err, &dial) {
		e.NotDone = true
	}
	if e.Reason == Untrusted {
		e.Text = err.Error() // of certificates and names
	}
	return e
}

// lastReply is the text of the reply that err has in it.
func lastReply(err error) string {
	var reply redis.Error
	errors.As(err, &reply)
	return reply.Error()
}

func reasonOf(err error) string {
	var timeout net.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, redis.ErrClosed), errors.Is(err, errClosed):
		return Closing
	case errors.Is(err, errReply):
		return Malformed
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout):
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.As(err, &dns), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreachable
	case strings.HasPrefix(err.Error(), "TLS: "), strings.Contains(err.Error(), "tls: "):
		return Untrusted
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Broken
	}
	if strings.HasPrefix(err.Error(), "redis: can't parse") || strings.HasPrefix(err.Error(), "redis: invalid reply") {
		return Malformed
	}
	return Broken
}
