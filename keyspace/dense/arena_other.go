//go:build !linux

package dense

func newSource() source { return heapSource{} }
