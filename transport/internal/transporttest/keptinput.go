package transporttest

// KeptInput is input that a transport keeps for a session.
type KeptInput interface {
	Room(limit, chunk int) []byte
	Received(n int)
	Consumed(n int)
	Bytes() []byte
	Size() int
	Release()
}
