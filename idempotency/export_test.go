package idempotency

// Compact returns value without unused slots.
func Compact(value []byte) []byte {
	state, records := Split(value)
	s := open(records)
	return relay(&s, 0, nil, s.used, state, nil)
}
