package process

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the times in /proc. USER_HZ is 100 on every architecture that Go supports.
const tick = 10 * time.Millisecond

// Of returns the resource usage of a process so far. The error wraps ErrUnknown if there is no such
// process.
func Of(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return parseStat(stat, int64(os.Getpagesize()))
}

// parseStat parses /proc/PID/stat. The second field is the program's name in parentheses and may
// contain anything, so the fields are counted from the last parenthesis.
func parseStat(stat []byte, pageSize int64) (Usage, error) {
	const user, system, resident = 14 - 3, 15 - 3, 24 - 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= resident {
		return Usage{}, fmt.Errorf("%w: its state has %d fields", ErrUnknown, len(fields))
	}
	var n [3]int64
	for i, field := range []int{user, system, resident} {
		var err error
		if n[i], err = strconv.ParseInt(string(fields[field]), 10, 64); err != nil {
			return Usage{}, fmt.Errorf("%w: %w", ErrUnknown, err)
		}
	}
	return Usage{CPU: time.Duration(n[0]+n[1]) * tick, User: time.Duration(n[0]) * tick, RSS: n[2] * pageSize}, nil
}

// Peak returns the maximum resident memory of the process so far, in bytes. The error wraps
// ErrUnknown if there is no such process.
func Peak(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return parsePeak(status)
}

// parsePeak returns the peak of the resident memory in bytes from /proc/PID/status.
func parsePeak(status []byte) (int64, error) {
	_, after, found := bytes.Cut(status, []byte("\nVmHWM:"))
	fields := bytes.Fields(after)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("%w: its status has no VmHWM", ErrUnknown)
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return kib << 10, nil
}

// Find returns the process that listens at an address of this machine. Only root can find the
// processes of other users. If there is none, the error is ErrUnknown.
func Find(addr net.Addr) (int, error) {
	inode, err := listener(addr)
	if err != nil {
		return 0, err
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0, err
	}
	want := "socket:[" + inode + "]"
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == want {
			return strconv.Atoi(strings.Split(link, "/")[2])
		}
	}
	return 0, ErrUnknown
}

// listener returns the inode of the socket that listens at addr. It returns ErrUnknown if there is
// none on this machine.
func listener(addr net.Addr) (string, error) {
	switch a := addr.(type) {
	case *net.TCPAddr:
		if !isLocal(a.IP) {
			return "", ErrUnknown
		}
		for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			text, err := os.ReadFile(table)
			if err != nil {
				continue // a kernel without IPv6
			}
			if inode := tcpListener(text, a.AddrPort()); inode != "" {
				return inode, nil
			}
		}
	case *net.UnixAddr:
		text, err := os.ReadFile("/proc/net/unix")
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		return unixListener(text, a.Name)
	}
	return "", ErrUnknown
}

// isLocal reports whether ip is an address of this machine.
func isLocal(ip net.IP) bool {
	if ip.IsLoopback() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}

// tcpListener searches /proc/net/tcp or tcp6 for a listening socket that accepts connections to
// addr, and returns its inode; "" if there is none. Such a socket is bound to addr or to all
// addresses.
func tcpListener(table []byte, addr netip.AddrPort) string {
	const localField, stateField, inodeField, listening = 1, 3, 9, "0A"
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) <= inodeField || fields[stateField] != listening {
			continue
		}
		local, ok := parseProcAddr(fields[localField])
		if ok && local.Port() == addr.Port() && (local.Addr().IsUnspecified() || local.Addr().Unmap() == addr.Addr().Unmap()) {
			return fields[inodeField]
		}
	}
	return ""
}

// parseProcAddr parses an address of /proc/net/tcp: the words of the address in hexadecimal and in
// the machine's byte order, a colon and the port.
func parseProcAddr(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil {
		return netip.AddrPort{}, false
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip, uint16(n)), ok
}

// unixListener searches /proc/net/unix for the listening socket at path, and returns its inode, or
// ErrUnknown if there is none.
func unixListener(table []byte, path string) (string, error) {
	const flagsField, inodeField, pathField, acceptsConnections = 3, 6, 7, "00010000"
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) > pathField && fields[flagsField] == acceptsConnections && fields[pathField] == path {
			return fields[inodeField], nil
		}
	}
	return "", ErrUnknown
}
