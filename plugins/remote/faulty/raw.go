package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"

	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// serveRaw is a plug-in made without the SDK, as one in another language is: the handshake by hand, and no service but those
// of the protocol. Its modes are faults that the SDK doesn't let anybody have; raw-good has none.
func serveRaw(mode string) {
	socket := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	settings, certificate := certify(mode)
	if mode == "raw-plain" {
		certificate = ""
	}
	var options []grpc.ServerOption
	if mode != "raw-plain" {
		options = append(options, grpc.Creds(credentials.NewTLS(settings)))
	}
	if mode == "raw-garbage" {
		options = append(options, grpc.ForceServerCodec(garbage{}))
	}
	s := grpc.NewServer(options...)
	pluginv1.RegisterPluginServer(s, &raw{mode: mode})
	pluginv1.RegisterPartitionerServer(s, &rawPartitioner{mode: mode})
	fmt.Fprintf(os.Stdout, "1|1|unix|%s|grpc|%s\n", socket, certificate)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		s.Stop()
	}()
	_ = s.Serve(listener)
}

// certify makes the plug-in's certificate, and settings that take the host's.
func certify(mode string) (*tls.Config, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"}, SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(os.Getenv("PLUGIN_CLIENT_CERT")))
	settings := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	if mode == "raw-open" {
		settings.ClientAuth = tls.NoClientCert
	}
	return settings, base64.RawStdEncoding.EncodeToString(der)
}

type raw struct {
	pluginv1.UnimplementedPluginServer
	mode string
}

func (r *raw) Info(context.Context, *pluginv1.InfoRequest) (*pluginv1.InfoResponse, error) {
	if r.mode == "raw-stuck" {
		select {}
	}
	role := pluginv1.RolePartitioner
	if r.mode == "raw-role" {
		role = pluginv1.RoleOffsets
	}
	return &pluginv1.InfoResponse{Name: "raw", Version: "1", Roles: []*pluginv1.Role{{Role: role}}}, nil
}

// Configure takes no options, unless the plug-in is raw-lax.
func (r *raw) Configure(_ context.Context, q *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	if len(q.GetOptionsYaml()) > 0 && r.mode != "raw-lax" {
		return &pluginv1.ConfigureResponse{Error: &pluginv1.Error{Code: pluginv1.Code_CODE_OPTIONS, Message: "there are no options"}}, nil
	}
	return &pluginv1.ConfigureResponse{PartitionStream: strings.HasPrefix(r.mode, "raw-stream")}, nil
}

// Ping isn't answered when the plug-in is raw-dead.
func (r *raw) Ping(ctx context.Context, _ *pluginv1.PingRequest) (*pluginv1.PingResponse, error) {
	if r.mode == "raw-dead" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &pluginv1.PingResponse{}, nil
}

type rawPartitioner struct {
	pluginv1.UnimplementedPartitionerServer
	mode string
}

// Partition doesn't get over nonsense when the plug-in is raw-brittle.
func (r *rawPartitioner) Partition(_ context.Context, q *pluginv1.PartitionRequest) (*pluginv1.PartitionResponse, error) {
	b, err := q.Batch()
	if err != nil && r.mode == "raw-brittle" {
		panic(err)
	}
	if err == nil && b.Partitions < 1 {
		err = partitioner.ErrInvalid
	}
	if err != nil {
		return &pluginv1.PartitionResponse{Error: pluginv1.NewError(pluginv1.RolePartitioner, err)}, nil
	}
	answer := &pluginv1.PartitionResponse{}
	for range b.Records {
		answer.Partitions = append(answer.Partitions, b.Choose(0))
	}
	return answer, nil
}

// PartitionStream answers as Partition does, unless the plug-in is raw-stream-mixed, which answers the call before, or
// raw-stream-ends, which answers none.
func (r *rawPartitioner) PartitionStream(stream grpc.BidiStreamingServer[pluginv1.PartitionRequest, pluginv1.PartitionResponse]) error {
	for {
		q, err := stream.Recv()
		if err != nil {
			return err
		}
		if r.mode == "raw-stream-ends" {
			return nil
		}
		answer, err := r.Partition(stream.Context(), q)
		if err != nil {
			return err
		}
		if answer.Call = q.GetCall(); r.mode == "raw-stream-mixed" {
			answer.Call--
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// garbage encodes answers to partition as something that is no message.
type garbage struct{}

var _ encoding.Codec = garbage{}

func (garbage) Name() string { return "proto" }

func (garbage) Marshal(v any) ([]byte, error) {
	if _, ok := v.(*pluginv1.PartitionResponse); ok {
		return []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff this is no message"), nil
	}
	return proto.Marshal(v.(proto.Message))
}

func (garbage) Unmarshal(data []byte, v any) error { return proto.Unmarshal(data, v.(proto.Message)) }
