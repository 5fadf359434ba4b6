package policy

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"unsafe"
)

// KeyForm is the form of the keys of a policy. The zero KeyForm accepts any key. With IP the key of a call is an IP
// address or a network, and the state belongs to the network with the prefix length V4 or V6 that contains it, or to a
// longer one that has an override or a boost: see [KeyForm.Network].
type KeyForm struct {
	// IP says that keys are IP addresses. If it is false, V4 and V6 are 0.
	IP bool
	// V4 and V6 are the prefix lengths of the networks in bits: at most 32 for IPv4, and 128 for IPv6.
	V4, V6 uint8
}

// These are the errors about keys that are addresses.
var (
	// ErrKey means that a KeyForm is not valid.
	ErrKey = errors.New("the KEY of a policy is IP and two prefix lengths, from 0 to 32 for IPv4 and from 0 to 128 for IPv6")
	// ErrNetwork means that a pattern is not valid for a policy whose keys are addresses.
	ErrNetwork = errors.New("a pattern of a policy with KEY IP is '*', an IP address or a network such as 10.0.0.0/8")
)

// ParseKeyForm parses a text such as [KeyForm.String] returns. The word IP may be in any case, and there may be more
// blanks. The error is [ErrKey], also for "".
func ParseKeyForm(text string) (f KeyForm, err error) {
	words := strings.Fields(text)
	if len(words) != 3 || !strings.EqualFold(words[0], "IP") {
		return KeyForm{}, ErrKey
	}
	for i, bits := range []*uint8{&f.V4, &f.V6} {
		n, err := strconv.ParseUint(words[i+1], 10, 8)
		if err != nil {
			return KeyForm{}, ErrKey
		}
		*bits = uint8(n)
	}
	f.IP = true
	return f, f.check()
}

// String returns the form as the option KEY has it, such as "IP 32 56". It returns "" for the zero KeyForm.
func (f KeyForm) String() string {
	if !f.IP {
		return ""
	}
	return "IP " + strconv.Itoa(int(f.V4)) + " " + strconv.Itoa(int(f.V6))
}

func (f KeyForm) check() error {
	if !f.IP && f != (KeyForm{}) || f.V4 > 32 || f.V6 > 128 {
		return ErrKey
	}
	return nil
}

// Network returns the network whose state the calls of address use. a has the entries that apply to address. If the
// network of an override or a boost is longer than those of f, it has a state of its own, because its own limits must
// not convert the state of all other addresses. ok is false if address is a network that is wider than those of f.
// address must be a result of [ParseAddress], and f must have IP.
func (f KeyForm) Network(address netip.Prefix, a *Applied) (network netip.Prefix, ok bool) {
	bits := f.lengthFor(address)
	if address.Bits() < bits {
		return netip.Prefix{}, false
	}
	for _, e := range [...]*Entry{a.Override, a.Boost} {
		if e != nil {
			bits = max(bits, lengthOf(e.Pattern))
		}
	}
	return netip.PrefixFrom(address.Addr(), bits).Masked(), true
}

// lengthOf returns the prefix length of pattern, the canonical text of a network or "*".
func lengthOf(pattern string) int {
	if pattern == "*" {
		return 0 // Atoi is not used, because its errors allocate memory
	}
	n, _ := strconv.Atoi(pattern[strings.LastIndexByte(pattern, '/')+1:])
	return n
}

// lengthFor returns the prefix length for the family of address.
func (f KeyForm) lengthFor(address netip.Prefix) int {
	if address.Addr().Is4() {
		return int(f.V4)
	}
	return int(f.V6)
}

// Pattern returns the form in which a pattern is stored: pattern itself if f accepts any key. With IP this is "*",
// or the text of a network with its length, without the bits of hosts: 10.0.0.7 becomes 10.0.0.7/32, and
// 10.0.0.9/8 becomes 10.0.0.0/8. A network of IPv4-mapped addresses becomes one of IPv4. The error is
// [ErrNetwork], for example if there is a zone, a port or a bracket.
func (f KeyForm) Pattern(pattern string) (string, error) {
	if !f.IP || pattern == "*" {
		return pattern, nil
	}
	network, ok := CanonicalNetwork(pattern)
	if !ok {
		return "", ErrNetwork
	}
	return network, nil
}

// Holds reports whether pattern is in the form in which Pattern returns it.
func (f KeyForm) Holds(pattern string) bool {
	if !f.IP || pattern == "*" {
		return true
	}
	_, ok := networkOf(pattern)
	return ok
}

// CanonicalNetwork returns the text of the network that pattern names, as [KeyForm.Pattern] stores it. It is false
// if pattern is neither an address nor a network.
func CanonicalNetwork(pattern string) (string, bool) {
	if strings.ContainsAny(pattern, "%[]") {
		return "", false
	}
	network, ok := ParseAddress([]byte(pattern))
	if !ok || !strings.Contains(pattern, "/") && hasPort(pattern) {
		return "", false
	}
	return network.Masked().String(), true
}

// MaxAddress is the maximum length in bytes of the text of an address. It leaves at least 70 bytes for a zone.
const MaxAddress = 128

// ParseAddress parses the key of a call under a policy whose keys are addresses. An address is returned as a network of
// its full length, and a network with the bits of hosts that it was given. Valid texts are those of [netip.ParseAddr]
// and [netip.ParsePrefix]. An IPv6 address may be in brackets, and a port may follow an IPv4 address or the brackets. A
// zone and a port are ignored. Addresses and networks of IPv4-mapped addresses (::ffff:0:0/96) are returned as
// addresses of IPv4. ParseAddress allocates nothing for a valid text.
func ParseAddress(text []byte) (address netip.Prefix, ok bool) {
	if len(text) == 0 || len(text) > MaxAddress || !mayBeAddress(text) {
		return netip.Prefix{}, false
	}
	s := unsafe.String(unsafe.SliceData(text), len(text)) // without a copy, so without an allocation; the results do not refer to s
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s) // ParsePrefix refuses zones and ports
		if err != nil {
			return netip.Prefix{}, false
		}
		return unmapped(p), true
	}
	addr, ok := addrOf(s)
	if !ok {
		return netip.Prefix{}, false
	}
	addr = addr.Unmap()
	return netip.PrefixFrom(addr, addr.BitLen()), true
}

// mayBeAddress reports whether the part of text before a zone has only characters of addresses. The errors of
// package netip allocate memory, so most keys that are no addresses do not reach it.
func mayBeAddress(text []byte) bool {
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F', c == '.', c == ':', c == '/', c == '[', c == ']':
		case c == '%':
			return true
		default:
			return false
		}
	}
	return true
}

// addrOf parses an address that may have brackets, a zone and a port.
func addrOf(s string) (addr netip.Addr, ok bool) {
	brackets := s[0] == '['
	if brackets && s[len(s)-1] != ']' || hasPort(s) {
		i := strings.LastIndexByte(s, ':')
		if i < 1 {
			return netip.Addr{}, false
		}
		if _, err := strconv.ParseUint(s[i+1:], 10, 16); err != nil { // the port must be a number of 16 bits, as in netip.ParseAddrPort
			return netip.Addr{}, false
		}
		s = s[:i]
	}
	if brackets {
		if len(s) < 2 || s[len(s)-1] != ']' {
			return netip.Addr{}, false
		}
		s = s[1 : len(s)-1]
	}
	s, zone, zoned := strings.Cut(s, "%") // the zone is cut off, because netip.ParseAddr would store it in a global table
	if zoned && zone == "" {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Is4() && (brackets || zoned) {
		return netip.Addr{}, false
	}
	return addr, true
}

// hasPort reports whether s, an address without brackets, has a port: an IPv6 address has at least two colons.
func hasPort(s string) bool {
	i := strings.IndexByte(s, ':')
	return i >= 0 && strings.IndexByte(s[i+1:], ':') < 0
}

// unmapped returns p or, if p is a network of IPv4-mapped addresses, the IPv4 network. A network that also has other
// addresses is returned without the bits of hosts.
func unmapped(p netip.Prefix) netip.Prefix {
	switch addr := p.Addr(); {
	case !addr.Is4In6():
		return p
	case p.Bits() < 96:
		return p.Masked()
	default:
		return netip.PrefixFrom(addr.Unmap(), p.Bits()-96)
	}
}
