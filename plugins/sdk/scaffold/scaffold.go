// Package scaffold writes the repository of a new plug-in: `barnabas plugin new` as a function. What it writes builds, passes
// its tests and runs; what the plug-in is for is the author's to fill in.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// Options say what is written.
type Options struct {
	// Role is what the plug-in is to be. There are templates for "partitioner".
	Role string
	// Name is the plug-in's name, and that of its folder and executable.
	Name string
	// Module is its Go module; "" for example.com/NAME.
	Module string
	// Version is the version of Barnabas that it is built against; "" leaves that to `go mod tidy`.
	Version string
	// Replace is a folder with the source of Barnabas to build against, instead of a version; "" for none.
	Replace string
}

// Write writes the repository into dir, which must not exist or be empty, and lists the files. After an error some files may
// be there.
func Write(dir string, o Options) ([]string, error) {
	if o.Role != "partitioner" {
		return nil, fmt.Errorf("no template for the role %q: there is partitioner", o.Role)
	}
	if !regexp.MustCompile(`^[a-z][a-z0-9_-]*$`).MatchString(o.Name) {
		return nil, fmt.Errorf("%q is no name for a plug-in: want lower-case letters, digits, '-' and '_', beginning with a letter", o.Name)
	}
	if o.Module == "" {
		o.Module = "example.com/" + o.Name
	}
	if o.Replace != "" {
		path, err := filepath.Abs(o.Replace)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(path, "plugins", "sdk")); err != nil {
			return nil, fmt.Errorf("%s isn't the source of Barnabas: %w", o.Replace, err)
		}
		o.Replace, o.Version = path, "v0.0.0"
	}
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return nil, fmt.Errorf("%s is there already, and not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root := "templates/" + o.Role
	entries, err := templates.ReadDir(root)
	if err != nil {
		return nil, err
	}
	var written []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".tmpl")
		if name == "gitignore" {
			name = ".gitignore"
		}
		parsed, err := template.ParseFS(templates, root+"/"+e.Name())
		if err != nil {
			return written, err
		}
		var text bytes.Buffer
		if err := parsed.Execute(&text, o); err != nil {
			return written, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o644); err != nil {
			return written, err
		}
		written = append(written, name)
	}
	return written, nil
}
