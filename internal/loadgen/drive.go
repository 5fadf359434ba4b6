package loadgen

import (
	"fmt"
	"runtime"
)

// driverFor returns the driver of a name, or the best one for "".
func driverFor(name string) (driver, error) {
	switch {
	case name == DriverGoroutine || name == "" && driveEpoll == nil:
		return driveGoroutines, nil
	case (name == DriverEpoll || name == "") && driveEpoll != nil:
		return driveEpoll, nil
	}
	return nil, fmt.Errorf("there is no driver %q on %s", name, runtime.GOOS)
}
