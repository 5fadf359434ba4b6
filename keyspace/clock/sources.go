package clock

// sources are the three clocks of the system, in nanoseconds: the wall clock,
// which may be stepped; the monotonic one, which is cheap and stands still while
// the machine is suspended; and the boot-time one, which does not.
type sources struct {
	wall func() int64
	mono func() int64
	boot func() int64
}
