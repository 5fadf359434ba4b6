package inproc

// Silent wants no byte to come to any of conns as long as no time passes: see [Client.Silent].
func Silent(conns ...*Client) {
	for _, c := range conns {
		c.Silent()
	}
}
