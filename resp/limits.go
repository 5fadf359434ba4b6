package resp

// Limits has the limits for what one client may send. MaxArgs, MaxBulk, MaxCommand and MaxInline
// must be positive. A connection on which a limit is exceeded is closed after an error reply, whose
// text is the text of Redis if Redis has one; MaxSkip allows exceptions.
type Limits struct {
	// MaxArgs is the maximum number of arguments of a command, including its name.
	MaxArgs int
	// MaxBulk is the maximum number of bytes of one argument.
	MaxBulk int
	// MaxCommand is the maximum number of bytes of a whole frame, from the '*' to the last line
	// end, and therefore of the memory that an unfinished command takes.
	MaxCommand int
	// MaxInline is the maximum length of a line in bytes: of an inline command up to its LF, or of
	// a count or length up to its CR.
	MaxInline int
	// MaxSkip is the maximum number of bytes of the arguments of a command that exceeds MaxBulk or
	// MaxCommand and is refused without closing the connection. If MaxSkip is 0, the connection is
	// closed.
	MaxSkip int64
	// CommandOption is the name of the option for MaxCommand, for error texts. "" means
	// client-query-buffer-limit.
	CommandOption string
	// PreAuthArgs is the maximum number of arguments for a client before authentication; 0 means
	// MaxArgs.
	PreAuthArgs int
	// PreAuthBulk is the maximum number of bytes of one argument for a client before
	// authentication; 0 means MaxBulk.
	PreAuthBulk int
}

// DefaultLimits returns the default limits for a client that may run commands.
func DefaultLimits() Limits {
	return Limits{
		MaxArgs:    65536,
		MaxBulk:    1 << 20,
		MaxCommand: 1 << 20,
		MaxInline:  64 << 10,
	}
}

// PreAuth returns the limits for a client before authentication: the limits of l, but at most ten
// arguments, as in Redis, of at most 4 KiB each, in a command or line of at most 16 KiB, and no
// MaxSkip.
func (l Limits) PreAuth() Limits {
	l.PreAuthArgs = 10
	l.PreAuthBulk = 4 << 10
	l.MaxSkip = 0
	l.MaxCommand = min(l.MaxCommand, 16<<10)
	l.MaxInline = min(l.MaxInline, 16<<10)
	return l
}

// checkArgs returns the error for a command with count arguments, or "" if count is within the
// limits.
func (l *Limits) checkArgs(count int64) Error {
	switch {
	case count > int64(l.MaxArgs):
		return ErrMultibulkLength
	case l.PreAuthArgs > 0 && count > int64(l.PreAuthArgs):
		return ErrUnauthMultibulk
	}
	return ""
}

// checkBulk returns the error for an argument of size bytes that begins at offset pos of the frame,
// or "" if it is within the limits.
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
