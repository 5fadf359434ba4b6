package command

// SliceWords is how many words a command that goes on in slices does at a time: each may
// take half a microsecond.
const SliceWords = 1 << 10

// InSlices calls do with the words of the running command, at once if they are few. Else
// only with some of them at a time: others have their turn in between, and the session
// does nothing else before done, which ends the command. Inside a transaction all is done
// at once. do and done run on the goroutine that feeds the session; done may be nil.
func (c *Call) InSlices(words [][]byte, do func(c *Call, word []byte), done func(c *Call)) {
	if len(words) <= SliceWords || c.Client.Exclusive || c.Client.Background {
		for _, word := range words {
			do(c, word)
		}
		if done != nil {
			done(c)
		}
		return
	}
	words = CloneArgs(words)
	c.parkInSlices(ArgsCost(words), func(c *Call) (more bool) {
		n := min(len(words), SliceWords)
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

// GoesOn is inSlices for what is not in the words of the command: slice does a part of it
// and reports whether there is more. It writes nothing before the last one. The first is
// done at once, and inside a transaction all are.
func (c *Call) GoesOn(slice func(c *Call) (more bool)) {
	for slice(c) {
		if !c.Client.Exclusive && !c.Client.Background {
			c.parkInSlices(0, slice)
			return
		}
	}
}

// parkInSlices parks the session of a command, which keeps so many bytes, until slice
// reports that there is no more.
func (c *Call) parkInSlices(kept int, slice func(c *Call) (more bool)) {
	p := c.NewWait()
	p.Kept, p.Slice = kept, slice
	c.Park(p)
}
