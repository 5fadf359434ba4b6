package storetest

import (
	"bytes"
	"os/exec"
	"runtime"
	"sync"
)

// process is a program that was started.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	said  *log
}

// launch starts program in the folder dir. Its output goes to said.
func launch(program string, args []string, dir string, said *log) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), ended: make(chan struct{}), said: said} //nolint:gosec // the program was found by this package
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, said, said
	p.cmd.SysProcAttr = endWithParent()
	started := make(chan error)
	go func() {
		// Pdeathsig applies to the thread that started the process, so the goroutine must stay on
		// it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the error usually says only that the process was killed
		}
	}()
	return p, <-started
}

// kill ends the process with SIGKILL, and returns when it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // the process may have ended already
	<-p.ended
}

// log has the output of one or several processes.
type log struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

// Write implements io.Writer.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes.Write(b)
}

// tail returns the end of the output.
func (l *log) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 1500
	b := l.bytes.Bytes()
	return string(b[max(0, len(b)-most):])
}
