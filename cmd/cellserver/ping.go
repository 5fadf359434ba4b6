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

// pingOptions is how ping was called.
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

// ping asks a server whether it answers, as a health check does.
func ping(args []string, w io.Writer) error { return (&pingOptions{}).run(args, w) }

// run is ping with what a test sets beforehand.
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
	defer func() { _ = c.Close() }() // the process ends
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

// refusals begin the errors of a server that works: it wants a password, its user may not call
// PING, it runs a script, or it cannot write. A restart mends none of them.
var refusals = []string{"NOAUTH ", "NOPERM ", "BUSY ", "MISCONF "}

// works tells whether an error is an answer of a server that works.
func works(err error) bool {
	return slices.ContainsFunc(refusals, func(r string) bool { return strings.HasPrefix(err.Error(), r) })
}

// reach is how the server is reached: at an address, or as it is configured, on this machine.
func (o *pingOptions) reach(names, environ []string) (*redis.Options, error) {
	switch {
	case len(names) == 0 && !o.names():
		return o.configured(environ)
	case o.file != "":
		return nil, errors.New("--config says where the server is: give no other address")
	}
	return o.options(first(names))
}

// configured is how the server is reached that the environment configures, and the file if
// there is one.
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
	own := false // whether it is the port with TLS
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

// trustThisMachine has a client of TLS take whatever certificate the server on this machine
// shows, which names other addresses than that of the loopback, unless an authority was named.
// To a server that wants a certificate it shows the server's own, unless another was named.
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

// localHost is where a server on this machine listens: at the first address that has to exist.
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
