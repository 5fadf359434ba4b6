package monitor

import (
	"sync"

	"github.com/cellserver/cellserver/command"
	"github.com/cellserver/cellserver/resp"
)

func monitorCommand() *command.Command {
	return &command.Command{
		Name: "monitor", Arity: 1, Flags: calm | command.FlagNoScript | command.FlagConnection, Group: "server",
		Summary: "Sends the connection every command that the server runs, but for those of operators. RESET ends that.",
		Since:   "1.0.0", Complexity: "O(N) for each command, of N connections that monitor", Reply: "OK, then a line for each command", Run: monitor,
	}
}

const errMonitorExclusive resp.Error = "ERR MONITOR isn't allowed for DENY BLOCKING client"

// audience is the set of clients that run MONITOR.
type audience struct {
	server *command.Server

	mu      sync.Mutex
	clients map[*command.Client]bool // the clients that run MONITOR; guarded by mu
}

func monitor(c *command.Call) {
	if c.Client.Exclusive || c.Client.ProxyOf != nil {
		c.Fail(errMonitorExclusive)
		return
	}
	command.ServerState[audience](c).join(c.Client)
	c.OK()
}

// join adds cl to the audience. From their next command on, sessions record their commands for the
// audience.
func (a *audience) join(cl *command.Client) {
	cl.Mark(command.MarkMonitoring, true)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clients == nil {
		a.clients = make(map[*command.Client]bool)
	}
	a.clients[cl] = true
	a.server.Halts.Or(command.HaltMonitor)
}

// leave is the Closed hook: it removes cl. When no client is left, sessions stop recording
// commands.
func (a *audience) leave(cl *command.Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.clients[cl] {
		return
	}
	if delete(a.clients, cl); len(a.clients) == 0 {
		a.server.Halts.And(^command.HaltMonitor)
	}
}

// reset is the Reset hook: it removes the client of c.
func (a *audience) reset(c *command.Call) (more bool) {
	if c.Client.Marks&command.MarkMonitoring != 0 {
		c.Client.Mark(command.MarkMonitoring, false)
		a.leave(c.Client)
	}
	return false
}

// has reports whether cl runs MONITOR. Any goroutine may call it.
func (a *audience) has(cl *command.Client) bool {
	if a.server.Halts.Load()&command.HaltMonitor == 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clients[cl]
}

// flush is the BatchEnd hook: it sends the commands that w has recorded to the clients. As with
// messages of Pub/Sub, a client that exceeds its output buffer limit is closed.
func (a *audience) flush(w *command.Worker) {
	if w.Lines.Size() == 0 {
		return
	}
	lines := w.Lines.Take(a.server.CivilMillis() * 1000)
	a.mu.Lock()
	to := make([]*command.Client, 0, len(a.clients))
	for cl := range a.clients {
		to = append(to, cl)
	}
	a.mu.Unlock()
	host, memory := &a.server.Host, 0
	var frame *command.SharedFrame
	if len(lines) >= command.SharedFrom {
		frame = &command.SharedFrame{Bytes: append([]byte(nil), lines...)}
		frame.Refs.Store(1)
		memory = len(lines)
	}
	for _, cl := range to {
		next, n := host.Messages.Post(cl, lines, frame)
		memory += n
		host.Messages.Follow(cl, next)
	}
	if frame != nil && frame.Refs.Add(-1) == 0 {
		memory -= len(frame.Bytes)
	}
	host.Messages.Posted(memory)
}
