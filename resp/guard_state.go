package resp

// Guard splits the bytes of one connection into commands exactly as Redis 7
// does, with every length judged before anything is done with it. redcon's own
// reader can be crashed, frozen or blown up by a few bytes from anyone; it never
// sees a byte that the guard has not proven.
//
// A Guard remembers how far it has understood an unfinished command, so a
// client that sends single bytes costs as much as one that sends them at once.
// The zero Guard is ready; it belongs to one connection and is not safe for use
// by several goroutines.
//
// Two oddities of Redis are kept, because a proxy in front may rely on them.
// A line of a frame ends at its CR, whatever byte follows, and the two bytes
// after an argument are skipped unseen. And Redis looks for line ends with
// strchr: a NUL byte hides the end of its line, which then never comes.
type Guard struct {
	pos  int // bytes of the unfinished frame already understood
	seen int // bytes of it searched for a line end, in vain
	left int // arguments of the frame that are not complete yet
	bulk int // 1 + length of the argument at pos, 0 while its head is due

	refused *refusal // nil: the command is not being thrown away
}

// refusal is the state of a Guard that throws a command away.
type refusal struct {
	why     Error
	skip    int64 // bytes of the present argument and its line end that are still to come
	skipped int64 // bytes of arguments so far, announced ones included
}

// idle reports whether g is between two commands. Comparing whole Guards would be a call.
func (g *Guard) idle() bool { return g.pos|g.seen|g.left|g.bulk == 0 && g.refused == nil }
