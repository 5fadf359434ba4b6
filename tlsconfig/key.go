package tlsconfig

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/des"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"hash"
)

var (
	errNoPassword = errors.New("the key is encrypted: set tls-key-file-pass")
	errPassword   = errors.New("tls-key-file-pass does not fit the key")
	errScheme     = errors.New("the key is encrypted in a way that is not supported: openssl pkcs8 -topk8 -v2 aes-256-cbc converts it")
)

// decryptKey returns content, the content of a key file in PEM form, with all encrypted keys
// decrypted. OpenSSL writes encrypted keys in two formats. For PKCS #8 the standard library has no
// function. For the older format, with a line Proc-Type, it has a function that is deprecated
// because the format is insecure. The error says that a key is encrypted and password is "" or
// wrong, or that the encryption is not supported.
func decryptKey(content []byte, password string) ([]byte, error) {
	var out []byte
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		encrypted := block.Type == "ENCRYPTED PRIVATE KEY" || x509.IsEncryptedPEMBlock(block) //nolint:staticcheck // the operator's choice
		if encrypted && password == "" {
			return nil, errNoPassword
		}
		var err error
		switch {
		case !encrypted:
		case block.Type == "ENCRYPTED PRIVATE KEY":
			block.Type = "PRIVATE KEY"
			block.Bytes, err = decryptPKCS8(block.Bytes, password)
		default:
			block.Bytes, err = x509.DecryptPEMBlock(block, []byte(password)) //nolint:staticcheck // likewise
			block.Headers = nil
			if errors.Is(err, x509.IncorrectPasswordError) {
				err = errPassword
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, pem.EncodeToMemory(block)...)
	}
	return out, nil
}

// These are the structures of PBES2 (RFC 8018) as far as OpenSSL writes them.
type (
	encryptedKey struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2Params struct {
		KDF, Cipher pkix.AlgorithmIdentifier
	}
	pbkdf2Params struct {
		Salt       []byte
		Iterations int
		KeyLength  int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

var (
	// oidPBES2 and oidPBKDF2 are the identifiers of RFC 8018.
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}
)

// maxIterations is the maximum number of iterations of PBKDF2. It bounds the work that a file can
// cause. By default OpenSSL uses 2,048 iterations.
const maxIterations = 10_000_000

// prf returns the constructor of the hash that PBKDF2 uses to derive a key from a password, or nil
// if id is not supported. Without an id the hash is SHA-1.
func prf(id asn1.ObjectIdentifier) func() hash.Hash {
	switch id.String() {
	case "", "1.2.840.113549.2.7":
		return sha1.New
	case "1.2.840.113549.2.9":
		return sha256.New
	case "1.2.840.113549.2.11":
		return sha512.New
	}
	return nil
}

// blockCipher returns the length in bytes of the key of the cipher id in CBC mode, and the
// constructor of the cipher. make is nil if the cipher is not supported.
func blockCipher(id asn1.ObjectIdentifier) (length int, make func([]byte) (cipher.Block, error)) {
	switch id.String() {
	case "2.16.840.1.101.3.4.1.2":
		return 16, aes.NewCipher
	case "2.16.840.1.101.3.4.1.22":
		return 24, aes.NewCipher
	case "2.16.840.1.101.3.4.1.42":
		return 32, aes.NewCipher
	case "1.2.840.113549.3.7":
		return 24, des.NewTripleDESCipher
	}
	return 0, nil
}

// decryptPKCS8 returns the decrypted key in der, an encrypted key in the form of PKCS #8. The error
// is errScheme if the encryption is not supported, or errPassword.
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var key encryptedKey
	var scheme pbes2Params
	var kdf pbkdf2Params
	var iv []byte
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		return nil, errScheme
	}
	if _, err := asn1.Unmarshal(key.Algorithm.Parameters.FullBytes, &scheme); err != nil || !key.Algorithm.Algorithm.Equal(oidPBES2) {
		return nil, errScheme
	}
	if _, err := asn1.Unmarshal(scheme.KDF.Parameters.FullBytes, &kdf); err != nil || !scheme.KDF.Algorithm.Equal(oidPBKDF2) {
		return nil, errScheme
	}
	if _, err := asn1.Unmarshal(scheme.Cipher.Parameters.FullBytes, &iv); err != nil {
		return nil, errScheme
	}
	hashed := prf(kdf.PRF.Algorithm)
	length, newBlock := blockCipher(scheme.Cipher.Algorithm)
	if hashed == nil || newBlock == nil || kdf.Iterations < 1 || kdf.Iterations > maxIterations {
		return nil, errScheme
	}
	derived, err := pbkdf2.Key(hashed, password, kdf.Salt, kdf.Iterations, length)
	if err != nil {
		return nil, errScheme
	}
	block, err := newBlock(derived)
	if err != nil || len(iv) != block.BlockSize() || len(key.Data) == 0 || len(key.Data)%block.BlockSize() != 0 {
		return nil, errScheme
	}
	plain := make([]byte, len(key.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, key.Data)
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > block.BlockSize() || padding > len(plain) {
		return nil, errPassword
	}
	plain = plain[:len(plain)-padding]
	if _, err := x509.ParsePKCS8PrivateKey(plain); err != nil {
		return nil, errPassword
	}
	return plain, nil
}
