package loadgen

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// spinBelow is the time to the next request below which an open loop polls
	// instead of sleeping: epoll counts in milliseconds, and a wake-up takes a while.
	spinBelow = 2 * time.Millisecond
	// pollEvery bounds every sleep, so that the end of a run is noticed.
	pollEvery = 50 * time.Millisecond
)

// driveEpoll drives a worker by an event loop on a thread of its own. In an open
// loop that thread never sleeps for less than two milliseconds: it polls, so that a
// command leaves within a microsecond of its instant, and a core is busy with it.
var driveEpoll driver = func(l *worker) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e := epollWorker{worker: l, events: make([]unix.EpollEvent, 256), due: make([]int, 0, 64)}
	defer e.close()
	if err := e.open(); err != nil {
		return err
	}
	return e.loop()
}

type epollWorker struct {
	*worker
	epoll int
	// fds are the sockets, by the number of their flow. A full one did not take all
	// that was written to it, and is watched until it has room.
	fds    []int
	full   []bool
	events []unix.EpollEvent
	// due are the flows with new requests: at most as many as fit, so that a worker
	// that lags behind its schedule still reads.
	due []int
	// turn is the flow that the next request of an open loop goes to.
	turn int
	// ended is set when a flow may have finished, so that all are looked at.
	ended bool
}

// open moves the connections from Go's own event loop to this one.
func (e *epollWorker) open() error {
	var err error
	if e.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("creating an event loop: %w", err)
	}
	for i, s := range e.sessions {
		fd, err := takeOver(s.conn)
		if err != nil {
			return fmt.Errorf("taking over a connection: %w", err)
		}
		e.fds = append(e.fds, fd)
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
		if err := unix.EpollCtl(e.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
			return fmt.Errorf("watching a connection: %w", err)
		}
	}
	e.full = make([]bool, len(e.fds))
	return nil
}

// takeOver returns a second descriptor of conn and closes the first: as long as it
// is open, Go's event loop wakes up for every reply too.
func takeOver(conn net.Conn) (int, error) {
	holder, ok := conn.(syscall.Conn)
	if !ok {
		return 0, errors.New("it is no socket")
	}
	raw, err := holder.SyscallConn()
	if err != nil {
		return 0, err
	}
	fd, dupErr := -1, error(nil)
	if err := raw.Control(func(first uintptr) {
		fd, dupErr = unix.FcntlInt(first, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return 0, err
	}
	if dupErr != nil {
		return 0, dupErr
	}
	conn.Close()
	return fd, nil
}

func (e *epollWorker) close() {
	for _, fd := range e.fds {
		_ = unix.Close(fd) // nothing is left to lose
	}
	_ = unix.Close(e.epoll)
}

func (e *epollWorker) loop() error {
	e.ended = true
	for {
		now := e.clock()
		if err := e.send(now); err != nil {
			return err
		}
		if e.abandoned.Load() || e.finished(now) {
			return nil
		}
		n, err := e.wait(now)
		if err != nil {
			return err
		}
		for i := range n {
			if err := e.serve(&e.events[i]); err != nil {
				return err
			}
		}
	}
}

// finished reports whether all flows are. It looks at them only when one may be.
func (e *epollWorker) finished(now int64) bool {
	over := e.over(e.pace, now)
	if !e.ended && !over {
		return false
	}
	e.ended = false
	for _, f := range e.flows {
		if !f.finished(over) {
			return false
		}
	}
	return true
}

// send starts the batches of a closed loop, once, or sends what is due in an open
// one.
func (e *epollWorker) send(now int64) error {
	if e.pace == nil {
		if !e.ended {
			return nil
		}
		for i, f := range e.flows {
			if f.waiting.len() == 0 {
				f.batch(now)
				if err := e.flush(i); err != nil {
					return err
				}
			}
		}
		return nil
	}
	e.due = e.due[:0]
	for len(e.due) < cap(e.due) && e.pace.next() <= now && !e.over(e.pace, now) {
		i, ok := e.pick()
		if !ok {
			break
		}
		e.flows[i].follow(e.pace, now)
		e.due = append(e.due, i)
	}
	for _, i := range e.due {
		if err := e.flush(i); err != nil {
			return err
		}
	}
	return nil
}

// pick returns the flow whose turn it is, passing over those that cannot send.
func (e *epollWorker) pick() (int, bool) {
	for range e.flows {
		i := e.turn
		e.turn = (e.turn + 1) % len(e.flows)
		if f := e.flows[i]; f.left > 0 && f.waiting.len() < maxWaiting {
			return i, true
		}
	}
	return 0, false
}

// wait returns the number of events that have come by the time at which there is
// something to send.
func (e *epollWorker) wait(now int64) (int, error) {
	sleep := pollEvery
	if e.pace != nil && !e.over(e.pace, now) {
		sleep = min(sleep, time.Duration(e.pace.next()-now)-spinBelow/2)
	}
	var n int
	var err error
	if sleep < spinBelow/2 {
		n, err = e.poll()
	} else {
		n, err = unix.EpollWait(e.epoll, e.events, int(sleep/time.Millisecond))
	}
	if errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("waiting for events: %w", err)
	}
	return n, nil
}

// poll asks for events without waiting. It does not tell Go's scheduler, which
// would take the thread's processor away.
func (e *epollWorker) poll() (int, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.epoll),
		uintptr(unsafe.Pointer(&e.events[0])), uintptr(len(e.events)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// serve takes what one connection has to say.
func (e *epollWorker) serve(event *unix.EpollEvent) error {
	i := int(event.Fd)
	f := e.flows[i]
	if event.Events&unix.EPOLLOUT != 0 {
		if err := e.resume(i); err != nil {
			return err
		}
	}
	if event.Events&^unix.EPOLLOUT == 0 {
		return nil
	}
	in := f.room()
	n, errno := rawRead(e.fds[i], in)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return nil
	case errno != 0:
		return fmt.Errorf("reading replies: %w", errno)
	case n == 0:
		return fmt.Errorf("reading replies: %w", io.ErrUnexpectedEOF)
	}
	f.got(n)
	now := e.clock()
	if err := f.receive(now); err != nil {
		return err
	}
	if f.waiting.len() > 0 {
		return nil
	}
	if e.pace == nil {
		f.batch(now)
	}
	e.ended = e.ended || f.finished(e.over(e.pace, now))
	return e.flush(i)
}

// flush writes what flow i has encoded, as far as its socket takes it.
func (e *epollWorker) flush(i int) error {
	f := e.flows[i]
	for len(f.out) > 0 && !e.full[i] {
		n, errno := rawWrite(e.fds[i], f.out)
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			e.full[i] = true
			return e.watch(i, unix.EPOLLIN|unix.EPOLLOUT)
		case errno != 0:
			return fmt.Errorf("sending commands: %w", errno)
		default:
			f.wrote(n)
		}
	}
	return nil
}

// resume writes to a socket that has room again.
func (e *epollWorker) resume(i int) error {
	e.full[i] = false
	if err := e.flush(i); err != nil || e.full[i] {
		return err
	}
	return e.watch(i, unix.EPOLLIN)
}

func (e *epollWorker) watch(i int, events uint32) error {
	event := unix.EpollEvent{Events: events, Fd: int32(i)}
	if err := unix.EpollCtl(e.epoll, unix.EPOLL_CTL_MOD, e.fds[i], &event); err != nil {
		return fmt.Errorf("watching a connection: %w", err)
	}
	return nil
}

// rawRead and rawWrite are for sockets that do not block, so Go's scheduler need
// not know of them.
func rawRead(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

func rawWrite(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}
