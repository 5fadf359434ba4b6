package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// quiet discards the log of the client library: the tool reports errors in its own words.
type quiet struct{}

// Printf implements the logger of the library.
func (quiet) Printf(context.Context, string, ...any) {}

// addressForms describes the forms of an address.
const addressForms = "redis://[user:password@]host:port, rediss://... for TLS, or unix:///path/of/socket"

// clientOptions parses the address of a running server. Its errors never contain the address,
// because that may contain a password.
func clientOptions(address string) (*redis.Options, error) {
	redis.SetLogger(quiet{})
	if !strings.Contains(address, "://") {
		if _, _, err := net.SplitHostPort(address); err == nil && !strings.Contains(address, "@") {
			return nil, fmt.Errorf("an address has a scheme: write redis://%s, or rediss://%s for TLS", address, address)
		}
		return nil, errors.New("the first argument is not an address: write " + addressForms)
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		var inURL *url.Error
		if errors.As(err, &inURL) {
			err = inURL.Err // the error leaves out the address, which may contain a password
		}
		return nil, fmt.Errorf("the address: %w (write %s)", err, addressForms)
	}
	// A user with a mistyped address should not wait for minutes.
	o.DialerRetries, o.MaxRetries = 1, 1
	o.DialTimeout = 5 * time.Second
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

// dialer connects to servers, like [net.Dialer].
type dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// dialWith makes a client with the options o open its connections through d, with TLS if o has a
// TLS configuration. If d is nil it does nothing.
func dialWith(d dialer, o *redis.Options) {
	if d == nil {
		return
	}
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err != nil || o.TLSConfig == nil {
			return conn, err
		}
		secure := tls.Client(conn, o.TLSConfig)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return secure, nil
	}
}

// shownAddress returns an address in a form for messages: with PASSWORD in place of its password,
// and with skip_verify as the only parameter. It returns "ADDRESS" if the address cannot be parsed.
func shownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "ADDRESS"
	}
	if _, secret := u.User.Password(); secret {
		u.User = url.UserPassword(u.User.Username(), "PASSWORD")
	}
	query := url.Values{}
	if v := u.Query().Get("skip_verify"); v != "" {
		query.Set("skip_verify", v)
	}
	u.RawQuery, u.Fragment = query.Encode(), ""
	return quoted(u.String())
}

// advice maps parts of error texts to advice. The first match is shown.
var advice = [][2]string{
	{"NOAUTH", "the server requires a password: redis://:PASSWORD@host:port"},
	{"WRONGPASS", "user or password is wrong"},
	{"invalid password", "the password is wrong"},
	{"without any password", "the server has no password: leave it out of the address"},
	{"NOPERM", "the user may not do this: give it the command, or use another user"},
	{"connection refused", "nothing listens at this address"},
	{"no such host", "this host does not exist"},
	{"does not look like a TLS", noTLS},
	{"remote error: tls: bad certificate", refusesCertificate},
	{"remote error: tls: unknown certificate authority", refusesCertificate},
	{"remote error: tls: expired certificate", refusesCertificate},
	{"certificate required", "the server wants a certificate of its clients, and this one shows none: --cert and --key name one"},
	{"certificate", "this machine does not trust the certificate: rediss://...?skip_verify=true skips the check"},
	{"i/o timeout", "no answer: check the port and firewalls"},
	{"context deadline exceeded", "it took too long"},
	{"EOF", wantsTLS},
	{"connection reset", wantsTLS},
}

const (
	refusesCertificate = "the server refuses the certificate of this client: it wants one of its tls-ca-cert-file"

	noTLS    = "the server does not use TLS on this port: write redis:// instead of rediss://"
	wantsTLS = "the server closed the connection: does it require TLS (rediss://)?"
)

// explain returns err, an error of a connection with the options o, with its probable cause for the
// user that has given the address. It returns err unchanged if no advice fits.
func explain(err error, o *redis.Options) error {
	for _, a := range advice {
		sign, means := a[0], a[1]
		if !strings.Contains(err.Error(), sign) {
			continue
		}
		// A server without TLS takes the handshake for a command and waits for its end, or closes
		// the connection.
		if o.TLSConfig != nil && (means == wantsTLS || sign == "i/o timeout" || sign == "context deadline exceeded") {
			means = "the TLS handshake failed: " + noTLS
		}
		return fmt.Errorf("%w (%s)", err, means)
	}
	return err
}
