//go:build !linux

package process

import "net"

// Find is not known on this system.
func Find(net.Addr) (int, error) { return 0, ErrUnknown }

// Of is not known on this system.
func Of(int) (Usage, error) { return Usage{}, ErrUnknown }

// Peak is not known on this system.
func Peak(int) (int64, error) { return 0, ErrUnknown }
