//go:build !linux

package process

import "net"

// Find returns ErrUnknown on this system.
func Find(net.Addr) (int, error) { return 0, ErrUnknown }

// Of returns ErrUnknown on this system.
func Of(int) (Usage, error) { return Usage{}, ErrUnknown }

// Peak returns ErrUnknown on this system.
func Peak(int) (int64, error) { return 0, ErrUnknown }
