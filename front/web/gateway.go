package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Gateway is the kind of gateway that sends checks. It determines the only source of the method, the host, the path and
// the query of the original request. Header fields of that gateway count only from a trusted proxy. Those of other
// gateways are ignored.
type Gateway uint8

// These are the kinds of gateways.
const (
	// NoGateway has no source, so the key of a check cannot have parts of the original request.
	NoGateway Gateway = iota
	// Nginx sends X-Original-URI, X-Original-Method and X-Original-Host, if its configuration says
	// so.
	Nginx
	// Traefik and Caddy send X-Forwarded-Uri, X-Forwarded-Method and X-Forwarded-Host.
	Traefik
	Caddy
	// Envoy sends checks with the method and the host of the original request, and with its path and query after the
	// parameters.
	Envoy
)

// Gateways has the names of the gateways in the option http-gateway.
var Gateways = []string{NoGateway: "none", Nginx: "nginx", Traefik: "traefik", Caddy: "caddy", Envoy: "envoy"}

// fields are the header fields with the URI, the method and the host of the original request. They are "" for gateways
// that do not send them.
var fields = [...]struct{ uri, method, host string }{
	Nginx:   {"X-Original-Uri", "X-Original-Method", "X-Original-Host"},
	Traefik: {"X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host"},
	Caddy:   {"X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host"},
	Envoy:   {},
}

// fault is the reason why a check has no answer. If denied is set, the client of the gateway has caused the fault, and
// the check is a denial: the gateway must not let the request pass. Otherwise the fault is for the operator, and status
// is the status of the response.
type fault struct {
	status int
	denied bool
	text   string
}

// Error implements the error interface.
func (f *fault) Error() string { return f.text }

func misconfigured(status int, format string, arguments ...any) error {
	return &fault{status: status, text: fmt.Sprintf(format, arguments...)}
}

func deniedBecause(format string, arguments ...any) error {
	return &fault{denied: true, text: fmt.Sprintf(format, arguments...)}
}

// original describes the request that a check is about.
type original struct {
	*http.Request
	gateway Gateway
	trusted []netip.Prefix
	// peer is the IP address of the peer, or the zero value if the peer has none, as with a Unix
	// socket.
	peer netip.Addr
	// rest is the path after the parameters of the check.
	rest string
}

// trusts reports whether a is a trusted proxy. A peer without an address is trusted, because it is on this machine and
// had the permission to use the socket.
func (o *original) trusts(a netip.Addr) bool {
	for _, network := range o.trusted {
		if network.Contains(a) {
			return true
		}
	}
	return !a.IsValid()
}

// appendKey appends the key of the parts to dst. A single part is the key without a change. Several parts are joined by
// |. In these, | and % become %7C and %25, so that different values of the parts cannot make the same key.
func (o *original) appendKey(dst []byte, parts []Part) ([]byte, error) {
	for i := range parts {
		value, err := o.value(&parts[i])
		switch {
		case err != nil:
			return dst, err
		case len(parts) == 1:
			return append(dst, value...), nil
		case i > 0:
			dst = append(dst, '|')
		}
		for j := range len(value) {
			switch c := value[j]; c {
			case '|':
				dst = append(dst, "%7C"...)
			case '%':
				dst = append(dst, "%25"...)
			default:
				dst = append(dst, c)
			}
		}
	}
	return dst, nil
}

// value returns the value of a part. An absent header field is "".
func (o *original) value(p *Part) (string, error) {
	switch p.Source {
	case Fixed:
		return p.Text, nil
	case Header:
		return o.header(p.Text)
	case IP:
		return o.client(), nil
	}
	if o.gateway == NoGateway {
		return "", misconfigured(http.StatusBadRequest, "uri, path, method and host need the option http-gateway")
	}
	if !o.trusts(o.peer) {
		return "", misconfigured(http.StatusForbidden, "uri, path, method and host count only from the option http-trusted-proxies")
	}
	switch p.Source {
	case Method:
		return o.field(fields[o.gateway].method, o.Method, "method")
	case Host:
		host, err := o.field(fields[o.gateway].host, o.Request.Host, "host")
		return hostName(host), err
	}
	uri, err := o.field(fields[o.gateway].uri, o.behind(), "path behind the parameters")
	if p.Source == Path {
		uri, _, _ = strings.Cut(uri, "?")
	}
	return uri, err
}

// behind returns the path and the query after the parameters of the check.
func (o *original) behind() string {
	if o.URL.RawQuery == "" && !o.URL.ForceQuery {
		return o.rest
	}
	return o.rest + "?" + o.URL.RawQuery
}

// header returns the value of a header field that the key of a check names. If the field occurs several times, the
// result is a denial, because the application may read another of its values.
func (o *original) header(name string) (string, error) {
	switch values := o.Header[name]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", deniedBecause("the header field %s is there %d times", name, len(values))
	}
}

// field returns the value of a header field of the gateway. If the gateway sends no such field, it returns own, the
// value in the request itself; what is the name of the value for errors. An empty value is a fault, because otherwise
// all clients would share a limit.
func (o *original) field(name, own, what string) (value string, err error) {
	if value = own; name != "" {
		what = name
		value, err = o.header(name)
	}
	if err == nil && value == "" {
		err = misconfigured(http.StatusBadRequest, "the gateway has sent no %s", what)
	}
	return value, err
}

// client returns the address of the client: the last address of X-Forwarded-For that is not one of a trusted proxy, if
// the peer is a trusted proxy. An element that is not an address ends the list. The client is then the proxy whose
// address follows that element.
func (o *original) client() string {
	client := o.peer
	list := o.Header["X-Forwarded-For"]
	for i := len(list) - 1; i >= 0 && o.trusts(client); i-- {
		for line := list[i]; o.trusts(client); {
			comma := strings.LastIndexByte(line, ',')
			before, ok := parseAddress(strings.TrimSpace(line[comma+1:]))
			if !ok {
				return text(client)
			}
			if client = before; comma < 0 {
				break
			}
			line = line[:comma]
		}
	}
	return text(client)
}

// text returns an address as a part of a key; "" for a peer on a Unix socket.
func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// parseAddress parses an element of X-Forwarded-For: an address, perhaps with a port or in brackets.
func parseAddress(element string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(element)
	if err != nil {
		if in, ok := strings.CutPrefix(element, "["); ok && strings.HasSuffix(in, "]") {
			a, err = netip.ParseAddr(in[:len(in)-1])
		} else {
			var p netip.AddrPort
			p, err = netip.ParseAddrPort(element)
			a = p.Addr()
		}
	}
	return a.Unmap().WithZone(""), err == nil
}

// addressOf returns the IP address of a; zero if a is not a TCP address.
func addressOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// hostName returns the name in a host field in lower case, without the port and without a dot at the end, so that every
// spelling of a host has the same key.
func hostName(host string) string {
	if name, port, err := net.SplitHostPort(host); err == nil && !strings.ContainsFunc(port, func(r rune) bool { return r < '0' || r > '9' }) {
		host = name
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}
