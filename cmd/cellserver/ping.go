package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cellserver/cellserver/config"
	"github.com/cellserver/cellserver/tlsconfig"
)

type pingOptions struct {
	connectionFlags
	file    string
	timeout *time.Duration
}

func pingFlags(o *pingOptions) *flag.FlagSet {
	flags := flag.NewFlagSet("ping", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.register(flags)
	flags.StringVar(&o.file, "config", "", "")
	o.timeout = spanVar(flags, "timeout", 2*time.Second)
	return flags
}

// ping checks whether a server replies, for health checks.
func ping(args []string, w io.Writer) error { return (&pingOptions{}).run(args, w) }

// run runs cellserver ping. It prints the reply. An error reply that only a working server gives is
// printed, too, and is not an error. A test may have set fields of o.
func (o *pingOptions) run(args []string, w io.Writer) error {
	names, err := parseMixed(pingFlags(o), args)
	if err != nil {
		return fmt.Errorf("ping: %w\n%s", err, pingUsage)
	}
	if len(names) > 1 || *o.timeout <= 0 {
		return errors.New(pingUsage)
	}
	options, err := o.reach(names, os.Environ())
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	options.Protocol, options.MaxRetries, options.ContextTimeoutEnabled = 2, -1, true
	options.DialTimeout, options.ReadTimeout = *o.timeout, *o.timeout
	ctx, cancel := context.WithTimeout(context.Background(), *o.timeout)
	defer cancel()
	c := redis.NewClient(options)
	defer func() { _ = c.Close() }() // an error does not matter, because the process ends
	reply, err := c.Ping(ctx).Result()
	if err != nil && !works(err) {
		return fmt.Errorf("ping: %w", explain(err, options))
	}
	if err != nil {
		reply = err.Error()
	}
	_, err = fmt.Fprintln(w, reply)
	return err
}

// refusals are the beginnings of errors from a server that works: it requires a password, the user
// may not call PING, it runs a script, or it cannot write. A restart would not fix any of them.
var refusals = []string{"NOAUTH ", "NOPERM ", "BUSY ", "MISCONF "}

// works reports whether an error is the reply of a server that works.
func works(err error) bool {
	return slices.ContainsFunc(refusals, func(r string) bool { return strings.HasPrefix(err.Error(), r) })
}

// reach returns the options for connecting to the server: at the address in names or of -h and -p,
// or on this machine as the environment or the file configures it.
func (o *pingOptions) reach(names, environ []string) (*redis.Options, error) {
	switch {
	case len(names) == 0 && !o.names():
		return o.configured(environ)
	case o.file != "":
		return nil, errors.New("--config says where the server is: give no other address")
	}
	return o.options(first(names))
}

// configured returns the options for connecting to the server that the environment and the file, if
// there is one, configure: to its port or, without one, to its Unix socket or its TLS port. With
// --tls only the TLS port is used. A server without any of them is an error.
func (o *pingOptions) configured(environ []string) (*redis.Options, error) {
	var args []string
	if o.file != "" {
		args = []string{o.file}
	}
	c, err := config.Load(args, environ)
	if err != nil {
		return nil, err
	}
	at := func(scheme, port string) url.URL {
		return url.URL{Scheme: scheme, Host: net.JoinHostPort(localHost(c), port)}
	}
	var u url.URL
	own := false // whether the port is the port for TLS
	switch port, secure, socket := c.Value("port"), c.Value("tls-port"), c.Path("unixsocket"); {
	case port != "0" && !o.secure:
		u = at("redis", port)
	case socket != "" && !o.secure:
		u = url.URL{Scheme: "unix", Path: socket}
	case secure != "0":
		u = at("rediss", secure)
		own = true
	default:
		return nil, errors.New("the server that is configured has no port and no socket to ask: name its address, such as rediss://host:port")
	}
	if password := c.Value("requirepass"); password != "" && o.user == "" {
		u.User = url.UserPassword("", password)
	}
	options, err := o.options(u.String())
	if err == nil && own {
		o.trustThisMachine(options.TLSConfig, c)
	}
	return options, err
}

// trustThisMachine makes a TLS client accept any certificate of the server, unless the user has
// named an authority. The server is on this machine, and its certificate usually names other
// addresses than the loopback one. If the server requires a certificate, the client presents the
// server's own, unless the user has named another.
func (o *pingOptions) trustThisMachine(conf *tls.Config, c *config.Config) {
	if o.ca == "" {
		conf.InsecureSkipVerify = true //nolint:gosec // as without TLS; with --cacert the certificate is verified
	}
	if len(conf.Certificates) > 0 || c.Value("tls-auth-clients") == "no" {
		return
	}
	if server, err := tlsconfig.Load(c.TLSOptions()); err == nil {
		conf.Certificates = server.Certificates
	}
}

// localHost returns the address at which a server on this machine listens: the only address or the
// first one that is not optional, and 127.0.0.1 if there is none. For an address that means all
// interfaces it returns the loopback address.
func localHost(c *config.Config) string {
	addresses := c.Addresses()
	for _, a := range append(slices.Clone(addresses), defaultHost) {
		switch host, optional := strings.CutPrefix(a, "-"); {
		case optional && len(addresses) > 1:
		case host == "*", host == "0.0.0.0":
			return defaultHost
		case host == "::*", host == "::":
			return "::1"
		default:
			return host
		}
	}
	return defaultHost
}
