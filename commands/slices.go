package commands

// sliceWords is how many words a command that goes on in slices does at a time: each may
// take half a microsecond.
const sliceWords = 1 << 10

// inSlices calls do with the words of the running command, at once if they are few. Else
// only with some of them at a time: others have their turn in between, and the session
// does nothing else before done, which ends the command. Inside a transaction all is done
// at once. do and done run on the goroutine that feeds the session; done may be nil.
func (c *Ctx) inSlices(words [][]byte, do func(c *Ctx, word []byte), done func(c *Ctx)) {
	if len(words) <= sliceWords || c.Client.exclusive || c.Client.beside {
		for _, word := range words {
			do(c, word)
		}
		if done != nil {
			done(c)
		}
		return
	}
	words = cloneArgs(words)
	c.parkInSlices(argsCost(words), func(c *Ctx) (more bool) {
		n := min(len(words), sliceWords)
		for _, word := range words[:n] {
			do(c, word)
		}
		if words = words[n:]; len(words) > 0 {
			return true
		}
		if done != nil {
			done(c)
		}
		return false
	})
}

// goesOn is inSlices for what is not in the words of the command: slice does a part of it
// and reports whether there is more. It writes nothing before the last one. The first is
// done at once, and inside a transaction all are.
func (c *Ctx) goesOn(slice func(c *Ctx) (more bool)) {
	for slice(c) {
		if !c.Client.exclusive && !c.Client.beside {
			c.parkInSlices(0, slice)
			return
		}
	}
}

// parkInSlices parks the session of a command, which keeps so many bytes, until slice
// reports that there is no more.
func (c *Ctx) parkInSlices(kept int, slice func(c *Ctx) (more bool)) {
	p := c.parking()
	p.kept, p.slice = kept, slice
	c.Park(p)
}

// goOn runs the next slice of a command, as if it had just been dispatched. It reports
// whether the command is done.
func (s *Session) goOn(l *Lane, p *Parked) (done bool) {
	mark := len(l.w.Buf)
	c := &l.ctx
	c.Client, c.Cmd, c.Args, c.fail = &s.Client, p.cmd, nil, false
	l.beginErrors()
	more := p.slice(c)
	l.endErrors(p.cmd)
	if more {
		return false
	}
	s.parked.Store(nil)
	s.hush(&l.w, mark)
	return true
}
