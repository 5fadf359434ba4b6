package main

import "fmt"

// exitStatus is the error of a tool that ends with an exit status of its own. err is nil if the
// tool has printed everything already.
type exitStatus struct {
	code int
	err  error
}

// Error returns the text of err, or "exit status" and the code if err is nil.
func (s exitStatus) Error() string {
	if s.err == nil {
		return fmt.Sprintf("exit status %d", s.code)
	}
	return s.err.Error()
}
