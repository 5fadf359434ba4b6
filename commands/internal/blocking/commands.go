package blocking

// Pop returns the Run function of BLPOP, BRPOP, BZPOPMIN or BZPOPMAX, depending on kind and front.
func Pop(kind *Kind, front bool) func(StoreCall) {
	return func(c StoreCall) {
		last := len(c.Args) - 1
		PopOrWait(c, Call{Kind: kind, Front: front}, c.Args[1:last], c.Args[last])
	}
}

// PopMany returns the Run function of BLMPOP or BZMPOP, depending on kind. front and back are the
// words for the ends, such as "LEFT" and "RIGHT".
func PopMany(kind *Kind, front, back string) func(StoreCall) {
	return func(c StoreCall) {
		call, keys, err := parseMpop(c.Args[2:], front, back)
		if err != "" {
			c.Fail(err)
			return
		}
		call.Kind = kind
		PopOrWait(c, call, keys, c.Args[1])
	}
}

// PopManyNow returns the Run function of LMPOP or ZMPOP, depending on kind. front and back are the
// words for the ends, such as "LEFT" and "RIGHT". The reply is a null array if no key has elements.
func PopManyNow(kind *Kind, front, back string) func(StoreCall) {
	return func(c StoreCall) {
		call, keys, err := parseMpop(c.Args[1:], front, back)
		if err != "" {
			c.Fail(err)
			return
		}
		call.Kind = kind
		if c.LeftLoop(c.StayOnLoop(popWork(c, &call, keys))) {
			return
		}
		done := false
		withKeys(c, keys, nil, func() { done = popNow(c, &call, keys) })
		if !done {
			c.W.NullArray()
		}
	}
}

// PopOrWait pops from the first of keys that has elements, or parks the session until a key has
// some or timeout, in seconds, has passed. Inside a transaction or script it replies with null
// instead of waiting. While the server is stopping it closes the client instead of waiting.
func PopOrWait(c StoreCall, call Call, keys [][]byte, timeout []byte) {
	d, err := parsePopTimeout(timeout)
	if err != "" {
		c.Fail(err)
		return
	}
	waits, stops := c.MayWait(), c.StopKeepsFromWaiting()
	if c.ExceedsLoop(popWork(c, &call, keys)) && waits {
		waitElsewhere(c, call, keys, d)
		return
	}
	withKeys(c, keys, call.To, func() {
		switch {
		case popNow(c, &call, keys):
		case waits:
			awaitPop(c, call, keys, d)
		case stops:
			c.Client.Closing = true
		case call.To != nil:
			c.W.Null()
		default:
			c.W.NullArray()
		}
	})
}
