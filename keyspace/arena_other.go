//go:build !linux

package keyspace

func newSource() source { return heapSource{} }
