package kafkatools

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// security reads how the client is to connect: without or with TLS (from PEM files, KIP-651), without or with a user's password.
func security(p *properties) ([]kgo.Opt, error) {
	var options []kgo.Opt
	protocol := strings.ToUpper(p.get("security.protocol", "PLAINTEXT"))
	withTLS, withSASL := false, false
	switch protocol {
	case "PLAINTEXT":
	case "SSL":
		withTLS = true
	case "SASL_PLAINTEXT":
		withSASL = true
	case "SASL_SSL":
		withTLS, withSASL = true, true
	default:
		return nil, fmt.Errorf("security.protocol: want PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, not %q", protocol)
	}
	if withTLS {
		config, err := tlsConfig(p)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if withSASL {
		mechanism, err := saslMechanism(p)
		if err != nil {
			return nil, err
		}
		options = append(options, mechanism)
	}
	return options, nil
}

func tlsConfig(p *properties) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	trusted, err := pem(p, "ssl.truststore", "certificates")
	if err != nil {
		return nil, err
	}
	if trusted != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(trusted) {
			return nil, errors.New("ssl.truststore: there is no certificate in it")
		}
	}
	chain, err := pem(p, "ssl.keystore", "certificate.chain")
	if err != nil {
		return nil, err
	}
	if chain != nil {
		key := []byte(p.get("ssl.keystore.key", ""))
		if len(key) == 0 {
			key = chain // a PEM file has both
		}
		certificate, err := tls.X509KeyPair(chain, key)
		if err != nil {
			return nil, fmt.Errorf("ssl.keystore: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	if p.get("ssl.endpoint.identification.algorithm", "https") == "" { // the host's name doesn't count, but who signed does
		roots := config.RootCAs
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(state tls.ConnectionState) error {
			o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
			for _, c := range state.PeerCertificates[1:] {
				o.Intermediates.AddCert(c)
			}
			_, err := state.PeerCertificates[0].Verify(o)
			return err
		}
	}
	return config, nil
}

// pem reads the PEM text of a key or trust store: from the property below it that holds the text, or from the file that it names.
func pem(p *properties, store, inline string) ([]byte, error) {
	if text := p.get(store+"."+inline, ""); text != "" {
		return []byte(text), nil
	}
	file := p.get(store+".location", "")
	if file == "" {
		return nil, nil
	}
	if t := p.get(store+".type", "JKS"); !strings.EqualFold(t, "PEM") {
		return nil, fmt.Errorf("%s.type is %s, and only PEM can be read: convert %s (keytool, openssl) and set %[1]s.type=PEM", store, t, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s.location: %w", store, err)
	}
	return text, nil
}

func saslMechanism(p *properties) (kgo.Opt, error) {
	login := p.get("sasl.jaas.config", "")
	user, password := jaas(login, "username"), jaas(login, "password")
	if user == "" || password == "" {
		return nil, errors.New(`sasl.jaas.config: want a login module with username="..." and password="..."`)
	}
	switch mechanism := p.get("sasl.mechanism", "GSSAPI"); mechanism {
	case "PLAIN":
		return kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()), nil
	case "SCRAM-SHA-256":
		return kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()), nil
	case "SCRAM-SHA-512":
		return kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()), nil
	default:
		return nil, fmt.Errorf("sasl.mechanism: want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, not %q", mechanism)
	}
}

// jaas finds an option of a login module in a JAAS configuration: NAME="value" or NAME=value.
func jaas(text, name string) string {
	found := regexp.MustCompile(`(?:^|\s)` + name + `\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))`).FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	if found[2] != "" {
		return found[2]
	}
	return regexp.MustCompile(`\\(.)`).ReplaceAllString(found[1], "$1")
}
