package engine

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Address has the location of the engine and the login. It is given by one URL:
//
//	valkey://[user:password@]host[:port][,host[:port]...][/0][?parameter=value&...]
//
// The schemes redis, valkeys and rediss are also known; valkeys and rediss use TLS. A single host
// is a standalone node or any node of a cluster; the node itself reports which. Several hosts are
// nodes of a cluster. A scheme with the suffix -sentinel or +sentinel means that the hosts are
// Sentinels. The path then is the name of the master that they watch:
//
//	valkey-sentinel://host:26379,host:26379/mymaster
type Address struct {
	// Hosts are the addresses of nodes or of Sentinels, each as host:port.
	Hosts []string
	// Master is the name of the master that the Sentinels watch, "" without Sentinels.
	Master string
	Login
	// Sentinel is the login at the Sentinels. It is empty if they need no login.
	Sentinel Login
	// TLS configures encryption. It is nil for connections without TLS.
	TLS *TLS
}

// Login is a user of the engine with a password. An empty User is the default user.
type Login struct {
	User, Password string
}

// TLS configures encrypted connections and the certificates that are trusted.
type TLS struct {
	// CA, Cert and Key are names of PEM files: the trusted certificates, and this server's
	// certificate with its key. Without CA, the certificates that the system trusts are trusted.
	// Without Cert and Key, this server has no certificate.
	CA, Cert, Key string
	// ServerName is the name that the server's certificate must have, if it is not the host.
	ServerName string
	// SkipVerify accepts every certificate.
	SkipVerify bool
}

const (
	defaultPort  = "6379"
	sentinelPort = "26379"
	maxHosts     = 64
)

// schemes maps each scheme to whether it uses TLS.
var schemes = map[string]bool{"valkey": false, "redis": false, "valkeys": true, "rediss": true}

// ParseAddress parses the URL s of a store: see [Address]. Its errors do not contain parts of s
// that may be a password.
func ParseAddress(s string) (*Address, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return nil, errors.New("a store is named by a URL such as valkey://host:6379")
	}
	scheme = strings.ToLower(scheme)
	base, sentinel := strings.CutSuffix(scheme, "-sentinel")
	if other, plus := strings.CutSuffix(scheme, "+sentinel"); plus {
		base, sentinel = other, true
	}
	encrypted, known := schemes[base]
	if !known {
		return nil, errors.New("unknown scheme: valkey, redis, valkeys and rediss are known, and each with -sentinel")
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest+query, "#") {
		return nil, errors.New("a URL of a store has no part behind a #; in a password it is written %23")
	}
	if strings.Contains(query, "@") {
		return nil, errors.New("an @ behind a ?: in a password a ? is written %3F, in a parameter an @ is written %40")
	}
	a := &Address{}
	if encrypted {
		a.TLS = &TLS{}
	}
	// The last @ ends the login, because user and password may contain any other character.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := a.Login.parse(rest[:at]); err != nil {
			return nil, err
		}
		rest = rest[at+1:]
	}
	hosts, path, _ := strings.Cut(rest, "/")
	port := defaultPort
	if sentinel {
		port = sentinelPort
	}
	if err := a.parseHosts(hosts, port); err != nil {
		return nil, err
	}
	if err := a.parsePath(path, sentinel); err != nil {
		return nil, err
	}
	if err := a.parseQuery(query); err != nil {
		return nil, err
	}
	return a, nil
}

// parse stores in l the user and the password from s, the part of a URL before the @. In both, %XX
// stands for a character. A user without a password, and an empty password, are errors.
func (l *Login) parse(s string) error {
	user, password, ok := strings.Cut(s, ":")
	if !ok {
		return errors.New("a user needs a password: user:password@, or :password@ for the default user")
	}
	var err, err2 error
	l.User, err = url.PathUnescape(user)
	l.Password, err2 = url.PathUnescape(password)
	if err != nil || err2 != nil {
		return errors.New("user or password has a % that is followed by no two hexadecimal digits; write %25 for a %")
	}
	if l.Password == "" {
		return errors.New("the password is empty")
	}
	return nil
}

// parseHosts adds the hosts of a URL, separated by commas in s, to a.Hosts. port is the port of a
// host without one.
func (a *Address) parseHosts(s, port string) error {
	for host := range strings.SplitSeq(s, ",") {
		at, err := parseHost(host, port)
		if err != nil {
			return err
		}
		if slices.Contains(a.Hosts, at) {
			return fmt.Errorf("host %q is named twice", at)
		}
		a.Hosts = append(a.Hosts, at)
	}
	if len(a.Hosts) > maxHosts {
		return fmt.Errorf("at most %d hosts can be named; one of a cluster knows the others", maxHosts)
	}
	return nil
}

// parseHost returns s as host:port. s is a name or an address, or an address in brackets, with or
// without a port. port is the port if s has none.
func parseHost(s, port string) (string, error) {
	name := s
	switch colon := strings.LastIndexByte(s, ':'); {
	case s == "":
		return "", errors.New("a host is missing")
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
		name = s[1 : len(s)-1]
	case colon >= 0:
		var err error
		if name, port, err = net.SplitHostPort(s); err != nil {
			return "", fmt.Errorf("host %q is not host:port; an IPv6 address stands in brackets", s)
		}
	}
	if name == "" || strings.ContainsAny(name, " \t\r\n@\\\"'<>") {
		return "", fmt.Errorf("host %q has no name, or characters that no name has", s)
	}
	if strings.Contains(name, ":") && net.ParseIP(strings.SplitN(name, "%", 2)[0]) == nil {
		return "", fmt.Errorf("host %q is no IPv6 address", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port of host %q is not between 1 and 65535", s)
	}
	return net.JoinHostPort(name, port), nil
}

// parsePath parses the path of a URL, without its slash: the name of the master for Sentinels,
// otherwise nothing or 0.
func (a *Address) parsePath(path string, sentinel bool) error {
	if sentinel {
		name, err := url.PathUnescape(path)
		if err != nil || name == "" || strings.ContainsAny(name, "/ \r\n") {
			return errors.New("the path names the master that the Sentinels watch, such as /mymaster")
		}
		a.Master = name
		return nil
	}
	if path != "" && path != "0" {
		return errors.New("the path is the number of a database, and only /0 can be used: a cluster has no other")
	}
	return nil
}

// parseQuery parses the parameters of a URL. Each parameter may occur once.
func (a *Address) parseQuery(s string) error {
	values, err := url.ParseQuery(s)
	if err != nil {
		return errors.New("the parameters behind the ? are not name=value, joined by &")
	}
	var t TLS
	for name, all := range values {
		if len(all) > 1 {
			return fmt.Errorf("parameter %q is there twice", name)
		}
		v, ofTLS := all[0], true
		if v == "" {
			return fmt.Errorf("parameter %q is empty", name)
		}
		switch name {
		case "ca":
			t.CA = v
		case "cert":
			t.Cert = v
		case "key":
			t.Key = v
		case "server-name":
			t.ServerName = v
		case "skip-verify":
			if v != "yes" && v != "no" {
				return errors.New("parameter \"skip-verify\" is yes or no")
			}
			t.SkipVerify = v == "yes"
		case "sentinel-user":
			a.Sentinel.User, ofTLS = v, false
		case "sentinel-password":
			a.Sentinel.Password, ofTLS = v, false
		default:
			return fmt.Errorf("unknown parameter %q: ca, cert, key, server-name, skip-verify, sentinel-user and sentinel-password are known", name)
		}
		if ofTLS && a.TLS == nil {
			return fmt.Errorf("parameter %q needs a scheme with TLS, valkeys or rediss", name)
		}
	}
	if a.TLS != nil {
		*a.TLS = t
	}
	return a.checkParameters()
}

// checkParameters returns an error if a parameter lacks another one that it needs, or excludes
// another.
func (a *Address) checkParameters() error {
	switch {
	case a.TLS != nil && (a.TLS.Cert == "") != (a.TLS.Key == ""):
		return errors.New("parameters \"cert\" and \"key\" need each other")
	case a.TLS != nil && a.TLS.SkipVerify && (a.TLS.CA != "" || a.TLS.ServerName != ""):
		return errors.New("parameter \"skip-verify\" leaves \"ca\" and \"server-name\" without a use")
	case a.Sentinel != Login{} && a.Master == "":
		return errors.New("parameters \"sentinel-user\" and \"sentinel-password\" need a scheme with -sentinel")
	case a.Sentinel.User != "" && a.Sentinel.Password == "":
		return errors.New("parameter \"sentinel-user\" needs \"sentinel-password\"")
	}
	return nil
}
