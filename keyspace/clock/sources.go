package clock

// sources has functions that read the three clocks of the system, in nanoseconds. The wall clock
// may be stepped. The monotonic clock is cheap to read, and stands still while the machine is
// suspended. The boot-time clock goes on while the machine is suspended.
type sources struct {
	wall func() int64
	mono func() int64
	boot func() int64
}
