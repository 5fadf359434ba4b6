package resp

// Limits bounds what one client may send. Every field must be positive except MaxSkip and the
// PreAuth fields, where 0 means that no tighter bound applies. A client is closed with the error
// text of Redis if Redis has one.
type Limits struct {
	// MaxArgs bounds the number of arguments of a command, including its name.
	MaxArgs int
	// MaxBulk bounds the bytes of one argument.
	MaxBulk int
	// MaxCommand bounds the bytes of a whole frame, from its '*' to its last line end, and
	// therefore the memory of an unfinished command.
	MaxCommand int
	// MaxInline is the largest index at which a line may end: the LF of an inline command, or the
	// CR of a count or length.
	MaxInline int
	// MaxSkip is the maximum number of bytes of arguments of a command that exceeds MaxBulk or
	// MaxCommand and is refused without closing the connection; with 0 the connection is closed.
	MaxSkip int64
	// CommandOption is the name of the option for MaxCommand, if it is not
	// client-query-buffer-limit.
	CommandOption string
	// PreAuthArgs is MaxArgs for a client before authentication.
	PreAuthArgs int
	// PreAuthBulk is MaxBulk for a client before authentication.
	PreAuthBulk int
}

// DefaultLimits returns the bounds for a client that may run commands.
func DefaultLimits() Limits {
	return Limits{
		MaxArgs:    65536,
		MaxBulk:    1 << 20,
		MaxCommand: 1 << 20,
		MaxInline:  64 << 10,
	}
}

// PreAuth returns l tightened for a client before authentication: ten arguments, as in Redis, of 4
// KiB each, in a command or line of 16 KiB.
func (l Limits) PreAuth() Limits {
	l.PreAuthArgs = 10
	l.PreAuthBulk = 4 << 10
	l.MaxSkip = 0
	l.MaxCommand = min(l.MaxCommand, 16<<10)
	l.MaxInline = min(l.MaxInline, 16<<10)
	return l
}

// checkArgs checks the announced number of arguments.
func (l *Limits) checkArgs(count int64) Error {
	switch {
	case count > int64(l.MaxArgs):
		return ErrMultibulkLength
	case l.PreAuthArgs > 0 && count > int64(l.PreAuthArgs):
		return ErrUnauthMultibulk
	}
	return ""
}

// checkBulk checks the announced length of one argument, whose bytes begin at offset pos of the
// frame.
func (l *Limits) checkBulk(size int64, pos int) Error {
	switch {
	case size < 0 || size > int64(l.MaxBulk):
		return ErrBulkLength
	case l.PreAuthBulk > 0 && size > int64(l.PreAuthBulk):
		return ErrUnauthBulk
	case size > int64(l.MaxCommand)-int64(pos)-2:
		return ErrCommandTooBig
	}
	return ""
}
