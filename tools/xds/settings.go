package xds

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/kelseyhightower/envconfig"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
)

// Settings are the variables of ratelimit that say where the rules come from, with the defaults of ratelimit.
type Settings struct {
	ConfigType string `envconfig:"CONFIG_TYPE" default:"FILE"`

	NodeID       string            `envconfig:"CONFIG_GRPC_XDS_NODE_ID" default:"default"`
	NodeMetadata string            `envconfig:"CONFIG_GRPC_XDS_NODE_METADATA"` // a list of the form key=value,key=value
	Address      string            `envconfig:"CONFIG_GRPC_XDS_SERVER_URL" default:"localhost:18000"`
	ConnectRetry time.Duration     `envconfig:"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL" default:"3s"`
	Headers      map[string]string `envconfig:"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS"`
	MaxMessage   int               `envconfig:"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES"` // maximum size in bytes; 0 means the default of gRPC

	UseTLS bool   `envconfig:"CONFIG_GRPC_XDS_SERVER_USE_TLS" default:"false"`
	Cert   string `envconfig:"CONFIG_GRPC_XDS_CLIENT_TLS_CERT"`
	Key    string `envconfig:"CONFIG_GRPC_XDS_CLIENT_TLS_KEY"`
	CACert string `envconfig:"CONFIG_GRPC_XDS_SERVER_TLS_CACERT"`
	SAN    string `envconfig:"CONFIG_GRPC_XDS_SERVER_TLS_SAN"`

	// A stream that has ended is opened again after a time between these two. It doubles with each attempt.
	BackoffInitial time.Duration `envconfig:"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL" default:"10s"`
	BackoffMax     time.Duration `envconfig:"XDS_CLIENT_BACKOFF_MAX_INTERVAL" default:"60s"`
	BackoffJitter  bool          `envconfig:"XDS_CLIENT_BACKOFF_JITTER" default:"true"`

	RuntimeRoot         string `envconfig:"RUNTIME_ROOT" default:"/srv/runtime_data/current"`
	RuntimeSubdirectory string `envconfig:"RUNTIME_SUBDIRECTORY"`
	RuntimeAppDirectory string `envconfig:"RUNTIME_APPDIRECTORY" default:"config"`
}

// FromEnvironment returns the settings of the environment of this process. The error names the variable that has a value
// of a wrong type.
func FromEnvironment() (*Settings, error) {
	s := new(Settings)
	if err := envconfig.Process("", s); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	return s, nil
}

// Uses reports whether the rules are from a control plane.
func (s *Settings) Uses() bool { return s.ConfigType == "GRPC_XDS_SOTW" }

// Rules returns the path that is the value of rls-config for `cellserver ratelimit` in the same environment.
func (s *Settings) Rules() string {
	return filepath.Join(s.RuntimeRoot, s.RuntimeSubdirectory, s.RuntimeAppDirectory)
}

// node returns the description by which the control plane chooses the rules for this client.
func (s *Settings) node() *core.Node {
	fields := make(map[string]*structpb.Value)
	for pair := range strings.SplitSeq(s.NodeMetadata, ",") {
		if key, value, whole := strings.Cut(pair, "="); whole {
			fields[key] = structpb.NewStringValue(value)
		}
	}
	return &core.Node{Id: s.NodeID, Metadata: &structpb.Struct{Fields: fields}}
}

// dialOptions returns the options of the connection to the control plane. The error says that a file with a certificate
// cannot be used.
func (s *Settings) dialOptions() ([]grpc.DialOption, error) {
	transport := insecure.NewCredentials()
	if s.UseTLS {
		conf, err := s.tlsConfig()
		if err != nil {
			return nil, err
		}
		transport = credentials.NewTLS(conf)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: s.ConnectRetry, Multiplier: 1, Jitter: 0.5, MaxDelay: s.ConnectRetry},
			MinConnectTimeout: 20 * time.Second, // the default of gRPC
		}),
	}
	if s.MaxMessage != 0 {
		options = append(options, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(s.MaxMessage)))
	}
	return options, nil
}

// tlsConfig returns the configuration of TLS. The certificate of the client is read again for each connection, so that one
// that is renewed is used.
func (s *Settings) tlsConfig() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.SAN}
	if s.CACert != "" {
		text, err := os.ReadFile(s.CACert)
		if err != nil {
			return nil, fmt.Errorf("CONFIG_GRPC_XDS_SERVER_TLS_CACERT: %w", err)
		}
		if conf.RootCAs, err = x509.SystemCertPool(); err != nil {
			conf.RootCAs = x509.NewCertPool()
		}
		if !conf.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("CONFIG_GRPC_XDS_SERVER_TLS_CACERT: %s has no certificate in PEM", s.CACert)
		}
	}
	if s.Cert == "" || s.Key == "" {
		return conf, nil
	}
	load := func() (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, fmt.Errorf("CONFIG_GRPC_XDS_CLIENT_TLS_CERT: %w", err)
		}
		return &cert, nil
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	return conf, nil
}
