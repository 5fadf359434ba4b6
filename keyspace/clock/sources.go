package clock

// sources are the three clocks of the system, in nanoseconds: the wall clock, which may be stepped;
// the monotonic clock, which is cheap and stands still while the machine is suspended; and the
// boot-time clock, which does not.
type sources struct {
	wall func() int64
	mono func() int64
	boot func() int64
}
