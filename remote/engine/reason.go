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

// These are the reasons that this package itself gives in [Error.Reason]. The other reasons are
// words of error replies, such as LOADING.
const (
	// Starting means that the nodes of the engine, or their time, are not known yet.
	Starting = "starting"
	// Timeout means that there was no answer within the time limit.
	Timeout = "timeout"
	// Refused means that no process listens at the address, or the node has its maximum number of
	// clients.
	Refused = "refused"
	// Unreachable means that there is no route to the address, or the name is unknown.
	Unreachable = "unreachable"
	// Broken means that the connection ended before the answer, or failed in another way.
	Broken = "broken"
	// Malformed means that the reply is invalid.
	Malformed = "malformed"
	// Overload means that too many requests wait for the node, or too many operations on all keys.
	Overload = "overload"
	// Closing means that the engine is being closed.
	Closing = "closing"
	// Untrusted means that the TLS handshake failed.
	Untrusted = "TLS"
	// Unknown means that an error reply begins with an unknown word.
	Unknown = "ERR"
)

// replyWords has the first words of error replies which say that nothing was done. The value says
// whether the node is also unusable for other requests then.
var replyWords = map[string]bool{
	"LOADING": true, "MASTERDOWN": true, "CLUSTERDOWN": true, "BUSY": true, "NOAUTH": true, "WRONGPASS": true,
	"READONLY": false, "OOM": false, "NOREPLICAS": false, "MISCONF": false, "NOPERM": false, "WRONGTYPE": false,
	"TRYAGAIN": false, "CROSSSLOT": false, "MOVED": false, "ASK": false, "NOSCRIPT": false, "DENIED": false,
}

// replied returns the error for text, an error reply. It keeps one known word and the name of a command at most, because
// a reply may contain keys.
func replied(text string) *Error {
	why := ""
	if name := forbidden(text); name != "" {
		why = "the user of the store may not run the command " + name
	}
	word, _, _ := strings.Cut(text, " ")
	if _, known := replyWords[word]; known {
		return &Error{Reason: word, Text: why, NotDone: true}
	}
	// Before Redis 7, the error of a script has the inner error reply in its middle.
	for field := range strings.FieldsSeq(text) {
		field = strings.TrimLeft(field, "-")
		if _, known := replyWords[field]; known {
			return &Error{Reason: field, NotDone: true}
		}
	}
	if strings.Contains(text, "max number of clients") {
		return &Error{Reason: Refused, Text: "the store has its maximum of clients", NotDone: true}
	}
	if why != "" { // why comes from the middle of the error of a script
		return &Error{Reason: "NOPERM", Text: why}
	}
	return &Error{Reason: Unknown, Text: "the store replied an error that is unknown"}
}

// forbidden returns the name of the command that the user of the store may not run, according to text, an error reply. It
// returns "" if the reply says nothing like that.
func forbidden(text string) string {
	_, rest, found := strings.Cut(text, " no permissions to run the '")
	name, _, ended := strings.Cut(rest, "'")
	other := func(r rune) bool { return (r < 'a' || r > 'z') && r != '|' && r != '-' }
	if !found || !ended || len(name) > maxCommandName || strings.ContainsFunc(name, other) {
		return ""
	}
	return name
}

// maxCommandName is the maximum number of bytes of a name that forbidden returns.
const maxCommandName = 32

// useless reports whether e means that the node is unusable for all requests.
func (e *Error) useless() bool {
	if down, known := replyWords[e.Reason]; known {
		return down
	}
	return e.Reason != Unknown
}

// moves reports whether e is about a key whose slot is on another node or moves to one.
func (e *Error) moves() bool {
	return e.Reason == "MOVED" || e.Reason == "ASK" || e.Reason == "TRYAGAIN"
}

// isReply reports whether err is an error reply of the node, as opposed to a failed connection.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// failed returns the error for err, the error of a connection. sent says that bytes of the
// request may have been sent.
func failed(err error, sent bool) *Error {
	if isReply(err) { // for example a reply to the login, before the request was sent
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
		e.Text = err.Error() // the text is about certificates and names, and contains no key
	}
	return e
}

// lastReply returns the text of the error reply in err, for which isReply must be true.
func lastReply(err error) string {
	var reply redis.Error
	errors.As(err, &reply)
	return reply.Error()
}

// reasonOf returns the reason for err, the error of a connection: [Broken] for an unknown error.
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
