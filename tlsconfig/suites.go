package tlsconfig

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// versions returns the lowest and the highest of the versions names, such as "TLSv1.2". Without
// names they are TLS 1.2 and 1.3. An unknown or insecure version is an error.
func versions(names []string) (least, most uint16, err error) {
	if len(names) == 0 {
		return tls.VersionTLS12, tls.VersionTLS13, nil
	}
	least = tls.VersionTLS13
	for _, name := range names {
		var v uint16
		switch strings.ToLower(name) {
		case "tlsv1.2":
			v = tls.VersionTLS12
		case "tlsv1.3":
			v = tls.VersionTLS13
		case "tlsv1", "tlsv1.1":
			return 0, 0, fmt.Errorf("tls-protocols: %s is not secure and not supported: use TLSv1.2 TLSv1.3", name)
		default:
			return 0, 0, fmt.Errorf("tls-protocols: %q is none of TLSv1.2 and TLSv1.3", name)
		}
		least, most = min(least, v), max(most, v)
	}
	return least, most, nil
}

// CheckProtocols returns an error if one of names is not a name of a supported version: "TLSv1.2"
// or "TLSv1.3", in any case.
func CheckProtocols(names []string) error {
	_, _, err := versions(names)
	return err
}

// suite is a cipher suite of TLS 1.2, with its name in OpenSSL.
type suite struct {
	id      uint16
	openssl string
	plain   bool // whether groups such as DEFAULT have the suite, because it has forward secrecy and does not use CBC
}

// all has the available cipher suites of TLS 1.2. Their order has no effect, since crypto/tls has
// its own.
var all = []suite{
	{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384", true},
	{tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384", true},
	{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305", true},
	{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305", true},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256", true},
	{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256", true},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, "ECDHE-ECDSA-AES256-SHA", false},
	{tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA, "ECDHE-RSA-AES256-SHA", false},
	{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, "ECDHE-ECDSA-AES128-SHA", false},
	{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, "ECDHE-RSA-AES128-SHA", false},
}

// named returns the suites that word means: a group such as DEFAULT, or one suite by its name in
// OpenSSL or in the standard. It returns none for an unknown word.
func named(word string) (ids []uint16) {
	for _, s := range all {
		group := s.plain && slices.Contains([]string{"ALL", "DEFAULT", "HIGH", "SECURE", "ECDHE", "EECDH", "COMPLEMENTOFDEFAULT"}, strings.ToUpper(word))
		if group || strings.EqualFold(s.openssl, word) || strings.EqualFold(tls.CipherSuiteName(s.id), word) {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// suites returns the suites that list selects. list has the words of a list in OpenSSL's syntax,
// such as "DEFAULT:!ECDHE-RSA-AES128-SHA"; without words it means DEFAULT. As in OpenSSL, unknown
// names select nothing, because lists contain names of many libraries. A list that selects nothing
// at all is an error.
func suites(list []string) ([]uint16, error) {
	if len(list) == 0 {
		return named("DEFAULT"), nil
	}
	var chosen, never []uint16
	for _, word := range list {
		switch word[0] {
		case '@': // a security level or an order, which is ignored, since crypto/tls has its own order
		case '!':
			never = append(never, named(word[1:])...)
		case '-':
			gone := named(word[1:])
			chosen = slices.DeleteFunc(chosen, func(id uint16) bool { return slices.Contains(gone, id) })
		default:
			for _, id := range named(strings.TrimPrefix(word, "+")) {
				if !slices.Contains(chosen, id) {
					chosen = append(chosen, id)
				}
			}
		}
	}
	chosen = slices.DeleteFunc(chosen, func(id uint16) bool { return slices.Contains(never, id) })
	if len(chosen) == 0 {
		return nil, errors.New("tls-ciphers selects none of the cipher suites that there are, such as ECDHE-RSA-AES128-GCM-SHA256")
	}
	return chosen, nil
}

// SplitCiphers returns the words of list, a list of cipher suites that are separated by colons,
// commas or spaces.
func SplitCiphers(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ',' || r == ' ' })
}

// CheckCiphers returns an error if list, the words of a list of cipher suites in OpenSSL's syntax,
// selects none of the available cipher suites. Names may be the names in OpenSSL or in the
// standard.
func CheckCiphers(list []string) error {
	_, err := suites(list)
	return err
}
