package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/term"
)

// connectionFlags are the options for connecting to a running server, with the names of redis-cli.
type connectionFlags struct {
	host, port, user string
	askPassword      bool
	secure, insecure bool
	ca, sni          string
	cert, key        string
	dial             dialer // opens connections; nil stands for package net
}

const (
	defaultHost = "127.0.0.1"
	defaultPort = "6379"
)

// register adds the options for connecting to flags, the options of a tool.
func (f *connectionFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&f.host, "h", "", "")
	flags.StringVar(&f.port, "p", "", "")
	flags.StringVar(&f.user, "user", "", "")
	flags.BoolVar(&f.askPassword, "askpass", false, "")
	flags.BoolVar(&f.secure, "tls", false, "")
	flags.BoolVar(&f.insecure, "insecure", false, "")
	flags.StringVar(&f.ca, "cacert", "", "")
	flags.StringVar(&f.sni, "sni", "", "")
	flags.StringVar(&f.cert, "cert", "", "")
	flags.StringVar(&f.key, "key", "", "")
}

// names reports whether host or port were given.
func (f *connectionFlags) names() bool { return f.host != "" || f.port != "" }

// options returns the options for connecting to the server at address or, if address is "", at -h
// and -p. The password is the one typed on the terminal if --askpass is given, otherwise the one in
// the address, otherwise the variable REDISCLI_AUTH, which redis-cli reads, too. A user without a
// password is an error.
func (f *connectionFlags) options(address string) (*redis.Options, error) {
	switch {
	case address == "":
		host, port := f.host, f.port
		if host == "" {
			host = defaultHost
		}
		if port == "" {
			port = defaultPort
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("-p %s is no port", port)
		}
		address = "redis://" + net.JoinHostPort(host, port)
	case f.names():
		return nil, errors.New("the server is at ADDRESS, or where -h and -p say: give one of them")
	}
	o, err := clientOptions(address)
	if err != nil {
		return nil, err
	}
	if f.user != "" {
		o.Username = f.user
	}
	if o.Password == "" {
		o.Password = os.Getenv("REDISCLI_AUTH")
	}
	if f.askPassword {
		if o.Password, err = askPassword(); err != nil {
			return nil, err
		}
	}
	if o.Username != "" && o.Password == "" {
		return nil, errors.New("a user needs a password: --askpass asks for it, or put it into REDISCLI_AUTH")
	}
	dialWith(f.dial, o)
	return o, f.encrypt(o)
}

// encrypt turns TLS on in o if the address or an option asks for it. Otherwise an option for TLS is
// an error, as is TLS over a Unix socket.
func (f *connectionFlags) encrypt(o *redis.Options) error {
	if o.TLSConfig == nil && !f.secure {
		if f.insecure || f.ca != "" || f.sni != "" || f.cert != "" || f.key != "" {
			return errors.New("--insecure, --cacert, --sni, --cert and --key need --tls, or an address that begins with rediss://")
		}
		return nil
	}
	if o.Network == "unix" {
		return errors.New("a unix socket does not speak TLS: leave out --tls")
	}
	if o.TLSConfig == nil {
		host, _, err := net.SplitHostPort(o.Addr)
		if err != nil {
			return err
		}
		o.TLSConfig = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	}
	if f.insecure {
		o.TLSConfig.InsecureSkipVerify = true //nolint:gosec // only with an explicit option
	}
	if f.sni != "" {
		o.TLSConfig.ServerName = f.sni
	}
	return f.readCertificates(o.TLSConfig)
}

// readCertificates reads the certificate files of the options into c. It returns an error if only
// one of --cert and --key is given.
func (f *connectionFlags) readCertificates(c *tls.Config) error {
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return fmt.Errorf("--cacert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("--cacert: %s contains no certificate", f.ca)
		}
	}
	switch {
	case f.cert == "" && f.key == "":
		return nil
	case f.cert == "" || f.key == "":
		return errors.New("--cert and --key belong together")
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("--cert and --key: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return nil
}

// askPassword reads a password from the terminal without showing it. It returns an error if
// standard input is not a terminal.
func askPassword() (string, error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return "", errors.New("--askpass needs a terminal: put the password into REDISCLI_AUTH")
	}
	fmt.Fprint(os.Stderr, "Password: ")
	password, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(os.Stderr)
	return string(password), err
}

// span is the value of an option that takes a duration: a number of seconds, or a number with a
// unit.
type span time.Duration

// String returns the duration as text: see [flag.Value].
func (s *span) String() string { return time.Duration(*s).String() }

// Set implements [flag.Value].
func (s *span) Set(text string) error {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		*s = span(time.Duration(seconds) * time.Second)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("write seconds, or a time such as 500ms")
	}
	*s = span(d)
	return nil
}

// spanVar adds an option that takes a duration.
func spanVar(flags *flag.FlagSet, name string, def time.Duration) *time.Duration {
	d := def
	flags.Var((*span)(&d), name, "")
	return &d
}
