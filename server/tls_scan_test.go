package server_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/certtest"
	"github.com/cellserver/cellserver/internal/inproc"
)

// eachKey runs test against a server with an ECDSA key, and with an RSA key.
func eachKey(t *testing.T, test func(t *testing.T, s *inproc.Secure, key string)) {
	for _, key := range []string{"ECDSA", "RSA"} {
		t.Run(key, func(t *testing.T) {
			inproc.Bubble(t, func(t *testing.T, w *inproc.World) {
				s := w.StartTLS()
				pair := s.Authority.Issue(t, certtest.Subject{Name: "server", RSA: key == "RSA"})
				require.Equal(t, inproc.OK, s.Dial().Do("CONFIG", "SET", "tls-cert-file", pair.CertFile, "tls-key-file", pair.KeyFile))
				test(t, s, key)
			})
		})
	}
}

// TestTLSOffersNothingWeak tries each version and each cipher suite of crypto/tls separately: the
// server accepts those of TLS 1.2 that have forward secrecy and an AEAD cipher and fit the key.
func TestTLSOffersNothingWeak(t *testing.T) {
	eachKey(t, func(t *testing.T, s *inproc.Secure, key string) {
		var offered []string
		for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12} {
			for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
				conf := limited(s.Authority.Client(), func(c *tls.Config) {
					c.MinVersion, c.MaxVersion, c.CipherSuites = version, version, []uint16{suite.ID}
				})
				if s.Serves(conf) {
					offered = append(offered, tls.VersionName(version)+" "+suite.Name)
				}
			}
		}
		require.ElementsMatch(t, []string{
			"TLS 1.2 TLS_ECDHE_" + key + "_WITH_AES_128_GCM_SHA256",
			"TLS 1.2 TLS_ECDHE_" + key + "_WITH_AES_256_GCM_SHA384",
			"TLS 1.2 TLS_ECDHE_" + key + "_WITH_CHACHA20_POLY1305_SHA256",
		}, offered)
		c := s.DialTLS(s.Authority.Client())
		require.EqualValues(t, tls.VersionTLS13, c.Conn.(*tls.Conn).ConnectionState().Version)
	})
}

// weak are cipher suites that no server should accept. crypto/tls and OpenSSL can no longer offer
// many of them.
var weak = map[string]uint16{
	"NULL-MD5": 0x0001, "NULL-SHA": 0x0002, "NULL-SHA256": 0x003b, "ECDHE-RSA-NULL-SHA": 0xc010, "ECDHE-ECDSA-NULL-SHA": 0xc006,
	"EXP-RC4-MD5": 0x0003, "EXP-RC2-CBC-MD5": 0x0006, "EXP-DES-CBC-SHA": 0x0008, "EXP-EDH-RSA-DES-CBC-SHA": 0x0014,
	"RC4-MD5": 0x0004, "RC4-SHA": 0x0005, "ECDHE-RSA-RC4-SHA": 0xc011, "ECDHE-ECDSA-RC4-SHA": 0xc007,
	"DES-CBC-SHA": 0x0009, "DES-CBC3-SHA": 0x000a, "ECDHE-RSA-DES-CBC3-SHA": 0xc012, "ECDHE-ECDSA-DES-CBC3-SHA": 0xc008,
	"ADH-RC4-MD5": 0x0018, "ADH-AES256-SHA": 0x003a, "AECDH-AES256-SHA": 0xc019, "ADH-AES256-GCM-SHA384": 0x00a7,
	"IDEA-CBC-SHA": 0x0007, "SEED-SHA": 0x0096, "CAMELLIA256-SHA": 0x0084, "PSK-AES256-CBC-SHA": 0x008d,
	"AES128-SHA": 0x002f, "AES256-GCM-SHA384": 0x009d, "DHE-RSA-AES256-SHA": 0x0039,
	"ECDHE-RSA-AES128-SHA": 0xc013, "ECDHE-ECDSA-AES128-SHA": 0xc009, "ECDHE-RSA-AES256-SHA384": 0xc028,
}

// hello returns a ClientHello of a version with these cipher suites, as a record.
func hello(version uint16, suites ...uint16) []byte {
	body := binary.BigEndian.AppendUint16(nil, version)
	body = append(body, bytes.Repeat([]byte{7}, 32)...) // random
	body = append(body, 0)                              // no session
	body = binary.BigEndian.AppendUint16(body, uint16(2*len(suites)))
	for _, s := range suites {
		body = binary.BigEndian.AppendUint16(body, s)
	}
	body = append(body, 1, 0) // no compression
	if version > 0x0300 {
		extensions := []byte{
			0, 10, 0, 4, 0, 2, 0, 23, // groups: P-256
			0, 11, 0, 2, 1, 0, // points: not compressed
			0, 13, 0, 8, 0, 6, 4, 3, 4, 1, 8, 4, // signatures: ECDSA, PKCS #1 and PSS with SHA-256
		}
		body = binary.BigEndian.AppendUint16(body, uint16(len(extensions)))
		body = append(body, extensions...)
	}
	message := append([]byte{1, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	record := []byte{22, 3, byte(min(version, 0x0301))}
	return append(binary.BigEndian.AppendUint16(record, uint16(len(message))), message...)
}

// accepts reports whether the server continues the handshake after a hello.
func accepts(s *inproc.Secure, hello []byte) bool {
	c := s.DialPort(s.TLSPort)
	defer c.Close()
	c.Send(string(hello))
	answer := make([]byte, 6)
	_, err := io.ReadFull(c.R, answer)
	const handshake, serverHello = 22, 2
	return err == nil && answer[0] == handshake && answer[5] == serverHello
}

// TestTLSRefusesOldVersionsAndWeakSuites sends its own hellos, since libraries no longer can: SSL
// 3.0 to TLS 1.2 with NULL, EXPORT, RC4, DES, 3DES, anonymous and other suites.
func TestTLSRefusesOldVersionsAndWeakSuites(t *testing.T) {
	good := map[string]uint16{"ECDSA": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "RSA": tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	eachKey(t, func(t *testing.T, s *inproc.Secure, key string) {
		const ssl3 = 0x0300
		require.True(t, accepts(s, hello(tls.VersionTLS12, good[key])), "a hello that is right is accepted")
		all := slices.Collect(maps.Values(weak))
		for _, version := range []uint16{ssl3, tls.VersionTLS10, tls.VersionTLS11} {
			require.False(t, accepts(s, hello(version, append(slices.Clone(all), good[key])...)), tls.VersionName(version))
		}
		for name, suite := range weak {
			require.False(t, accepts(s, hello(tls.VersionTLS12, suite)), name)
		}
		require.True(t, accepts(s, hello(tls.VersionTLS12, append(all, good[key])...)), "among others")
	})
}
