package policy_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/effort"
	"github.com/cellserver/cellserver/policy"
)

// networkOf returns the text of the network of a key, "-" if the key is no address, or "wide".
func networkOf(key string, f policy.KeyForm) string {
	address, ok := policy.ParseAddress([]byte(key))
	if !ok {
		return "-"
	}
	network, ok := f.Network(address, &policy.Applied{})
	if !ok {
		return "wide"
	}
	return network.String()
}

// TestAddressesAgainstPython compares with what Python's ipaddress has computed: see testdata/addresses.py.
func TestAddressesAgainstPython(t *testing.T) {
	file, err := os.Open("testdata/addresses.txt")
	require.NoError(t, err)
	defer file.Close()
	seen := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var inHex, want string
		f := policy.KeyForm{IP: true}
		_, err := fmt.Sscan(lines.Text(), &inHex, &f.V4, &f.V6, &want)
		require.NoError(t, err)
		key, err := hex.DecodeString(strings.Trim(inHex, `"`))
		require.NoError(t, err)
		require.Equal(t, want, networkOf(string(key), f), "%q with %s", key, f)
		seen[want]++
	}
	require.Greater(t, seen["-"], 900)
	require.Greater(t, seen["wide"], 500)
}

// byNetip returns the network of a key as text, by the functions of package netip that parse whole texts. Zones of
// networks are refused there, too.
func byNetip(key string, f policy.KeyForm) string {
	addr, err := netip.ParseAddr(key)
	if err != nil && len(key) > 1 && key[0] == '[' && key[len(key)-1] == ']' {
		if addr, err = netip.ParseAddr(key[1 : len(key)-1]); addr.Is4() {
			return "-"
		}
	}
	if err != nil {
		var with netip.AddrPort
		with, err = netip.ParseAddrPort(key)
		addr = with.Addr()
	}
	bits := addr.BitLen()
	if err != nil {
		p, err := netip.ParsePrefix(key)
		if err != nil {
			return "-"
		}
		addr, bits = p.Addr(), p.Bits()
		if addr.Is4In6() && bits < 96 {
			addr = p.Masked().Addr()
		}
	}
	if addr.Is4In6() {
		bits -= 96
	}
	addr = addr.Unmap().WithZone("")
	want := map[int]int{32: int(f.V4), 128: int(f.V6)}[addr.BitLen()]
	if min(bits, addr.BitLen()) < want {
		return "wide"
	}
	p, _ := addr.Prefix(want)
	return p.String()
}

// anyAddress returns a key that is mostly an address, in one of the forms, and often broken.
func anyAddress(random *rand.Rand) string {
	var b [16]byte
	for i := range b {
		if random.IntN(3) > 0 {
			b[i] = byte(random.Uint32())
		}
	}
	addr := netip.AddrFrom16(b)
	v4 := netip.AddrFrom4([4]byte(b[:4]))
	switch random.IntN(6) {
	case 0, 1:
		addr = v4
	case 2:
		addr = netip.AddrFrom16(v4.As16())
	}
	text := addr.String()
	switch random.IntN(8) {
	case 0:
		text = fmt.Sprintf("%s/%d", text, random.IntN(130))
	case 1:
		text = netip.AddrPortFrom(addr, uint16(random.Uint32())).String()
	case 2:
		text = "[" + text + "]"
	case 3:
		text += "%eth" + fmt.Sprint(random.IntN(9))
	case 4:
		text = addr.StringExpanded()
	}
	if random.IntN(4) == 0 {
		at, c := random.IntN(len(text)+1), ".:/%[]0g \x00"[random.IntN(10)]
		text = text[:at] + string(c) + text[min(at+random.IntN(2), len(text)):]
	}
	return text
}

// TestAddressesAgainstNetip compares random keys, and checks that the canonical form is a fixed point.
func TestAddressesAgainstNetip(t *testing.T) {
	random := rand.New(rand.NewPCG(30, 2))
	seen := map[string]int{}
	for range effort.Steps(100_000, 1_000_000) {
		key := anyAddress(random)
		f := policy.KeyForm{IP: true, V4: uint8(random.IntN(33)), V6: uint8(random.IntN(129))}
		got := networkOf(key, f)
		if host, _, zoned := strings.Cut(key, "%"); zoned && strings.Contains(key, "/") {
			require.Equal(t, "-", got, "%q: netip has the rest of %q as a zone", key, host)
			continue
		}
		require.Equal(t, byNetip(key, f), got, "%q with %s", key, f)
		if seen[got]++; got == "-" || got == "wide" {
			continue
		}
		require.Equal(t, got, networkOf(got, f))
		require.True(t, f.Holds(got))
		stored, err := f.Pattern(got)
		require.NoError(t, err)
		require.Equal(t, got, stored)
	}
	require.Greater(t, seen["-"], 2000)
	require.Greater(t, seen["wide"], 2000)
}

func TestPatternsOfAddresses(t *testing.T) {
	f := policy.KeyForm{IP: true, V4: 24, V6: 56}
	for pattern, want := range map[string]string{
		"*": "*", "10.0.0.7": "10.0.0.7/32", "10.0.0.9/8": "10.0.0.0/8", "0.0.0.0/0": "0.0.0.0/0", "::/0": "::/0",
		"::ffff:10.0.0.0/120": "10.0.0.0/24", "::FFFF:a00:7": "10.0.0.7/32", "2001:DB8::7": "2001:db8::7/128",
		"2001:db8:0:0::/32": "2001:db8::/32", "::ffff:1.2.3.4/90": "::ffc0:0:0/90",
	} {
		got, err := f.Pattern(pattern)
		require.NoError(t, err, pattern)
		require.Equal(t, want, got)
		require.Equal(t, pattern == want, f.Holds(pattern), pattern)
		same, err := policy.KeyForm{}.Pattern(pattern)
		require.NoError(t, err)
		require.Equal(t, pattern, same)
		require.True(t, policy.KeyForm{}.Holds(pattern))
	}
	for _, pattern := range []string{
		"", "acme", "10.*", "10.0.0.*", "**", "10.0.0.7:443", "[::1]", "[::1]:443", "fe80::1%eth0", "10.0.0.0/33", "10.0.0.0/08", "::1/64*", "10.0.0.0/8 ",
	} {
		_, err := f.Pattern(pattern)
		require.ErrorIs(t, err, policy.ErrNetwork, pattern)
		require.False(t, f.Holds(pattern), pattern)
	}
}

func TestKeyForms(t *testing.T) {
	for text, want := range map[string]policy.KeyForm{
		"IP 32 128": {IP: true, V4: 32, V6: 128}, " ip  0 0 ": {IP: true}, "Ip 024 56": {IP: true, V4: 24, V6: 56},
	} {
		f, err := policy.ParseKeyForm(text)
		require.NoError(t, err, text)
		require.Equal(t, want, f)
		again, err := policy.ParseKeyForm(f.String())
		require.NoError(t, err)
		require.Equal(t, f, again)
	}
	for _, text := range []string{"", "IP", "IP 32", "IP 33 56", "IP 32 129", "IP -1 0", "IP 32 256", "IP 1 2 3", "NET 1 2", "IP /32 /56", "IP x 1"} {
		_, err := policy.ParseKeyForm(text)
		require.ErrorIs(t, err, policy.ErrKey, text)
	}
	require.Empty(t, policy.KeyForm{}.String())
}

// TestAddressesAllocateNothing: neither addresses nor most keys that are none cause an allocation.
func TestAddressesAllocateNothing(t *testing.T) {
	effort.Alone(t)
	f := policy.KeyForm{IP: true, V4: 24, V6: 56}
	for _, key := range []string{
		"10.0.0.7", "10.0.0.7:443", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1%eth0]:443", "fe80::1%eth0", "::ffff:10.0.0.7", "10.0.0.0/25",
		"2001:db8::/64", "acme", "user:17", "", strings.Repeat("1", 1000), "::1 ",
	} {
		text, room := []byte(key), make([]byte, 0, 64)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if address, ok := policy.ParseAddress(text); ok {
				network, _ := f.Network(address, &policy.Applied{})
				room = network.AppendTo(room[:0])
			}
		}), key)
	}
}

// FuzzParseAddress: no key causes a panic. A network contains the address, and its text names the same network.
func FuzzParseAddress(f *testing.F) {
	for _, text := range []string{"10.0.0.7", "[::ffff:10.0.0.7%e]:80", "2001:db8::/33", "fe80::1%eth0", "10.0.0.7:443", "[", "::ffff:0:0/95"} {
		f.Add([]byte(text), uint8(24), uint8(56))
	}
	f.Fuzz(func(t *testing.T, text []byte, v4, v6 uint8) {
		before := bytes.Clone(text)
		form := policy.KeyForm{IP: true, V4: v4 % 33, V6: v6 % 129}
		address, ok := policy.ParseAddress(text)
		require.Equal(t, before, text)
		if !ok {
			require.False(t, address.IsValid())
			_, err := netip.ParseAddr(string(text))
			require.True(t, err != nil || len(text) > policy.MaxAddress || strings.Contains(string(text), "/"), "%q", text)
			return
		}
		require.Empty(t, address.Addr().Zone())
		require.False(t, address.Addr().Is4In6())
		again, ok := policy.ParseAddress([]byte(address.String()))
		require.True(t, ok)
		require.Equal(t, address, again)
		if network, ok := form.Network(address, &policy.Applied{}); ok {
			require.True(t, network.Contains(address.Addr()))
			require.LessOrEqual(t, network.Bits(), address.Bits())
			require.Equal(t, network.String(), networkOf(string(text), form))
		}
	})
}
