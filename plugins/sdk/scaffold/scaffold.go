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
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// Options say what is written.
type Options struct {
	// Role is what the plug-in is to be, one of Roles.
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

// role is what differs in the files that all plug-ins have.
type role struct {
	name   string
	What   string // what the plug-in that is written does, for a sentence
	Option string // the sdk's function for the role
}

func roles() []role {
	return []role{
		{"partitioner", "it puts the records of a region into partitions of their own.", "Partitioner"},
		{"compression", "it compresses with the gzip of Go's standard library.", "Compression"},
		{"offsets", "it keeps the offsets of consumer groups in a file.", "Offsets"},
	}
}

// Roles are the roles that there are templates for.
func Roles() []string {
	var names []string
	for _, r := range roles() {
		names = append(names, r.name)
	}
	return names
}

// Write writes the repository into dir, which must not exist or be empty, and lists the files. After an error some files may
// be there.
func Write(dir string, o Options) ([]string, error) {
	at := slices.Index(Roles(), o.Role)
	if at < 0 {
		return nil, fmt.Errorf("no template for the role %q: there are %s", o.Role, strings.Join(Roles(), ", "))
	}
	if !regexp.MustCompile(`^[a-z][a-z0-9_-]*$`).MatchString(o.Name) {
		return nil, fmt.Errorf("%q is no name for a plug-in: want lower-case letters, digits, '-' and '_', beginning with a letter", o.Name)
	}
	if o.Module == "" {
		o.Module = "example.com/" + o.Name
	}
	if o.Replace != "" {
		source, err := filepath.Abs(o.Replace)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(source, "plugins", "sdk")); err != nil {
			return nil, fmt.Errorf("%s isn't the source of Barnabas: %w", o.Replace, err)
		}
		o.Replace, o.Version = source, "v0.0.0"
	}
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return nil, fmt.Errorf("%s is there already, and not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var written []string
	for _, folder := range []string{"common", o.Role} {
		names, err := fs.Glob(templates, "templates/"+folder+"/*.tmpl")
		if err != nil {
			return written, err
		}
		for _, from := range names {
			name := strings.TrimSuffix(path.Base(from), ".tmpl")
			if name == "gitignore" {
				name = ".gitignore"
			}
			if err := fill(filepath.Join(dir, name), from, o, roles()[at]); err != nil {
				return written, err
			}
			written = append(written, name)
		}
	}
	return written, nil
}

// fill writes one file.
func fill(to, from string, o Options, r role) error {
	parsed, err := template.ParseFS(templates, from)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, struct {
		Options
		role
	}{o, r}); err != nil {
		return err
	}
	return os.WriteFile(to, text.Bytes(), 0o644)
}
