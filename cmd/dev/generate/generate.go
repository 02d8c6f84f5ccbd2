// Package generate makes the files of the repository that are made of others: the Go code of the plug-in protocol of its .proto file, with
// the generators of the versions named here and no other program; and the configuration with every key of what the program knows.
package generate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

const (
	// folder holds the .proto file and what is made of it.
	folder = "plugins/remote/proto/v1"
	file   = "plugin.proto"
	// registered is the name under which the file is known in every program that links it, so it must not be anybody else's.
	registered = "barnabas/plugin/v1/plugin.proto"
)

// generators are the programs that make Go code.
func generators() []string {
	return []string{"google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12", "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2"}
}

// Run makes the code in the repository at root. With check it writes nothing, and fails when the files there are others.
func Run(ctx context.Context, t *tools.Tools, root string, check bool) error {
	descriptor, err := compile(ctx, filepath.Join(root, folder, file))
	if err != nil {
		return err
	}
	var errs []error
	for _, program := range generators() {
		bin, err := t.GoTool(ctx, program)
		if err != nil {
			return err
		}
		files, err := generate(ctx, bin, descriptor)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		for _, f := range files {
			name := filepath.Join(root, folder, path.Base(f.GetName()))
			if !check {
				errs = append(errs, os.WriteFile(name, []byte(f.GetContent()), 0o644))
				continue
			}
			if there, err := os.ReadFile(name); err != nil || string(there) != f.GetContent() {
				errs = append(errs, fmt.Errorf("%s isn't what %s gives: run `go run ./cmd/dev generate`", name, file))
			}
		}
	}
	return errors.Join(append(errs, copyTo(root, check), allOptions(ctx, t, root, check))...)
}

// options is the configuration with every key.
const options = "configs/all-options.yaml"

// allOptions has the program print the configuration with every key.
func allOptions(ctx context.Context, t *tools.Tools, root string, check bool) error {
	bin, err := t.GoBuild(ctx, "./cmd/barnabas")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, bin, "config", "defaults")
	cmd.Stderr = os.Stderr
	want, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("barnabas config defaults: %w", err)
	}
	name := filepath.Join(root, options)
	if !check {
		return os.WriteFile(name, want, 0o644)
	}
	if there, err := os.ReadFile(name); err != nil || !bytes.Equal(there, want) {
		return fmt.Errorf("%s isn't what `barnabas config defaults` prints: run `go run ./cmd/dev generate`", name)
	}
	return nil
}

// copyTo keeps the copies of the .proto file that programs in other languages have beside them.
func copyTo(root string, check bool) error {
	want, err := os.ReadFile(filepath.Join(root, folder, file))
	if err != nil {
		return err
	}
	name := filepath.Join(root, "plugins/examples/python-partitioner", file)
	if !check {
		return os.WriteFile(name, want, 0o644)
	}
	if there, err := os.ReadFile(name); err != nil || !bytes.Equal(there, want) {
		return fmt.Errorf("%s is no copy of %s/%s: run `go run ./cmd/dev generate`", name, folder, file)
	}
	return nil
}

// compile parses the .proto file.
func compile(ctx context.Context, name string) (*descriptorpb.FileDescriptorProto, error) {
	c := protocompile.Compiler{
		Resolver: &protocompile.SourceResolver{Accessor: func(asked string) (io.ReadCloser, error) {
			if asked != registered {
				return nil, fmt.Errorf("%s: %w", asked, os.ErrNotExist)
			}
			return os.Open(name)
		}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := c.Compile(ctx, registered)
	if err != nil {
		return nil, err
	}
	return protodesc.ToFileDescriptorProto(files[0]), nil
}

// generate runs one of protoc's plug-ins.
func generate(ctx context.Context, bin string, descriptor *descriptorpb.FileDescriptorProto) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{registered}, Parameter: proto.String("paths=source_relative"), ProtoFile: []*descriptorpb.FileDescriptorProto{descriptor},
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, bin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return response.GetFile(), nil
}
