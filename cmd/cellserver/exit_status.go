package main

import "fmt"

// exitStatus is the error of a tool that ends with a status of its own. err is nil if the tool
// has said what there is to say.
type exitStatus struct {
	code int
	err  error
}

// Error is what err says.
func (s exitStatus) Error() string {
	if s.err == nil {
		return fmt.Sprintf("exit status %d", s.code)
	}
	return s.err.Error()
}
