package replication_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/cellserver/cellserver/replication/protocol"
	"github.com/cellserver/cellserver/transport"
)

// wire is a connection as its session uses it: a transport.Peer.
type wire struct {
	transport.Peer // no other method is used
	conn           net.Conn
	news           chan struct{}
}

func (c *wire) Wake() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func (c *wire) Abort() { _ = c.conn.Close() }

// serve is the session of one client: the handshake of a replica, and then its stream.
func (m *member) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	c := &wire{conn: conn, news: make(chan struct{}, 1)}
	call := protocol.PSync{Client: m.web.ids.Add(1), Peer: c, Addr: "pipe:1"}
	for {
		words, err := readCommand(r)
		if err != nil {
			return
		}
		reply := "+OK\r\n"
		switch strings.ToUpper(words[0]) {
		case "PING":
			reply = "+PONG\r\n"
		case "REPLCONF":
			for i := 1; i+1 < len(words); i += 2 {
				switch words[i] {
				case "listening-port":
					call.Port, _ = strconv.Atoi(words[i+1])
				case "ip-address":
					call.IP = words[i+1]
				case "capa":
					if words[i+1] == "cell1" {
						call.Capa |= protocol.CapaCell1
					}
					if id, is := strings.CutPrefix(words[i+1], "data:"); is && !m.old {
						call.DataSet = id
					}
				}
			}
		case "PSYNC":
			call.ReplID = words[1]
			call.Offset, _ = strconv.ParseInt(words[2], 10, 64)
			call.Failover = len(words) > 3
			line, pump, refused := m.node.PSync(call)
			if refused != "" {
				line = []byte("-" + string(refused) + "\r\n")
			}
			if _, err := conn.Write(line); err != nil || pump == nil {
				if pump != nil {
					pump.Closed()
				}
				return
			}
			m.pump(conn, r, c, &call, pump)
			return
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

// pump sends the stream and reads the replies, until the connection ends.
func (m *member) pump(conn net.Conn, r *bufio.Reader, c *wire, call *protocol.PSync, pump transport.Pump) {
	gone := make(chan struct{})
	var hearing sync.WaitGroup
	hearing.Go(func() {
		defer close(gone)
		for {
			words, err := readCommand(r)
			if err != nil {
				return
			}
			says := protocol.Ack{}
			says.Applied, _ = strconv.ParseUint(words[2], 10, 64)
			if len(words) > 4 {
				says.HasSynced = true
				says.Synced, _ = strconv.ParseUint(words[4], 10, 64)
			}
			m.node.Acknowledge(call.Client, says)
		}
	})
	defer hearing.Wait()
	defer func() { _ = conn.Close() }()
	defer pump.Closed()
	for {
		out, more, err := pump.Fill(nil, 64<<10)
		if len(out) > 0 {
			if _, err := conn.Write(out); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
		if more {
			continue
		}
		select {
		case <-c.news:
		case <-gone:
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	number := func(mark byte) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil || line[0] != mark {
			return 0, fmt.Errorf("not a command: %q %w", line, err)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number('*')
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := number('$')
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		words[i] = string(b[:size])
	}
	return words, nil
}
