package transport_test

func exhausted() bool { return false }
