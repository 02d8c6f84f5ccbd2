package remote

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// validFor is how long the certificate of a connection counts: as long as go-plugin's own.
const validFor = 30 * 365 * 24 * time.Hour

// mutualTLS makes a certificate for one life of a plug-in, and the TLS settings that go with it. go-plugin's AutoMTLS does the
// same with a key on P-521, which the TLS library of gRPC for Python, Ruby and C++ (BoringSSL) doesn't take; with one on P-256
// any plug-in can verify its host. The plug-in's own certificate comes with its handshake, and is the only one accepted.
func mutualTLS(now time.Time) (settings *tls.Config, certificate []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost", Organization: []string{"Barnabas"}}, DNSNames: []string{"localhost"}, SerialNumber: serial,
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(validFor), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign | x509.KeyUsageKeyAgreement,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	var text bytes.Buffer
	if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		return nil, nil, fmt.Errorf("write a certificate: %w", err)
	}
	settings = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		MinVersion:   tls.VersionTLS12, ServerName: "localhost",
		RootCAs: x509.NewCertPool(), // none, until the plug-in has sent its own
	}
	return settings, text.Bytes(), nil
}
