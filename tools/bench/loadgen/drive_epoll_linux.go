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
	// spinBelow is the time to the next request below which an open loop polls instead of
	// sleeping, because epoll_wait counts in milliseconds and a wake-up takes time.
	spinBelow = 2 * time.Millisecond
	// pollEvery limits every sleep, so that the loop notices the end of a run.
	pollEvery = 50 * time.Millisecond
)

// driveEpoll runs a worker's event loop on a thread of its own. In an open loop this thread polls
// for the last millisecond or two before each request, so that the command leaves within about a
// microsecond of its instant. At 1,000 requests a second and more this keeps one core busy.
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
	// fds are the sockets, by the index of their flow. full says that a socket has not taken all
	// that was written to it. The loop then waits until the socket is writable.
	fds    []int
	full   []bool
	events []unix.EpollEvent
	// due are the flows with new requests. Its capacity is the maximum number of requests that are
	// encoded at a time, so that a worker that lags behind its schedule still reads replies.
	due []int
	// turn is the index of the flow that gets the next request of an open loop.
	turn int
	// ended is set when a flow may have finished, so that the loop checks all of them.
	ended bool
}

// open moves the connections from Go's network poller to this event loop.
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

// takeOver duplicates the descriptor of conn and closes conn: while it is open, Go's network poller
// would wake up for every reply, too.
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
		_ = unix.Close(fd) // no data can be lost at this point
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

// finished reports whether all flows have finished. It checks them only when one of them may have.
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

// send starts the first batches of a closed loop, or sends the requests of an open loop that are
// due.
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

// pick returns the index of the next flow, in turn, that can send. It returns false if none can.
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

// wait waits for events, for pollEvery at most and not beyond the next request, and returns their
// number.
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

// poll asks for events without waiting. It does not enter Go's scheduler, which could give the
// thread's P to another one.
func (e *epollWorker) poll() (int, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.epoll),
		uintptr(unsafe.Pointer(&e.events[0])), uintptr(len(e.events)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// serve handles one event: it resumes writing, reads replies and sends the next batch.
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

// flush writes the encoded requests of flow i until its socket takes no more.
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

// resume writes to a socket that is writable again. If the socket takes everything, the loop no
// longer waits until it is writable.
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

// rawRead and rawWrite bypass Go's scheduler, which is safe because the sockets do not block.
func rawRead(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

func rawWrite(fd int, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}
