package resp

// Limits bounds what one client may send. Every field must be positive but
// MaxSkip and the PreAuth ones, where 0 means that no tighter bound applies. The texts with
// which a client is closed are those of Redis wherever Redis has one.
type Limits struct {
	// MaxArgs bounds the arguments of a command, the name included.
	MaxArgs int
	// MaxBulk bounds the bytes of one argument.
	MaxBulk int
	// MaxCommand bounds the bytes of a whole frame, from its '*' to its last
	// line end, and so the memory that an unfinished command can hold.
	MaxCommand int
	// MaxInline is the greatest index at which a line may end: of an inline
	// command its LF, of a count or length its CR.
	MaxInline int
	// MaxSkip is up to how many bytes of arguments a command that is longer than MaxBulk
	// or MaxCommand admit may have to be refused with its connection kept; 0 closes it.
	MaxSkip int64
	// CommandOption is what sets MaxCommand, if not client-query-buffer-limit.
	CommandOption string
	// PreAuthArgs is MaxArgs for a client that has yet to authenticate.
	PreAuthArgs int
	// PreAuthBulk is MaxBulk for a client that has yet to authenticate.
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

// PreAuth returns l tightened for a client that has yet to authenticate: ten
// arguments, as Redis, of 4 KiB each, in a command or line of 16 KiB.
func (l Limits) PreAuth() Limits {
	l.PreAuthArgs = 10
	l.PreAuthBulk = 4 << 10
	l.MaxSkip = 0
	l.MaxCommand = min(l.MaxCommand, 16<<10)
	l.MaxInline = min(l.MaxInline, 16<<10)
	return l
}

// checkArgs judges the announced number of arguments.
func (l *Limits) checkArgs(count int64) Error {
	switch {
	case count > int64(l.MaxArgs):
		return ErrMultibulkLength
	case l.PreAuthArgs > 0 && count > int64(l.PreAuthArgs):
		return ErrUnauthMultibulk
	}
	return ""
}

// checkBulk judges the announced length of one argument, whose bytes begin at
// offset pos of the frame.
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
