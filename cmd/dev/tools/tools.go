// Package tools installs what the tests need, through the package managers' ordinary clients, into the repository's cache.
//
// Everything is keyed by what was asked for: a folder carries the hash of its manifest, is filled once and used as it is
// from then on; a changed manifest makes another folder. Only Debian packages go outside the cache.
package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// Tools installs into one cache. Any goroutine may use it; installations go one after the other.
type Tools struct {
	env *task.Env
	mu  sync.Mutex

	building sync.Mutex
	built    map[string]bool // programs, by what made them
}

// New returns Tools for e's cache.
func New(e *task.Env) *Tools {
	return &Tools{env: e, built: map[string]bool{}}
}

// once returns the cache folder for kind, name and manifest. When it isn't complete yet, it is emptied and filled by
// fill; a mark written last says that it is complete.
func (t *Tools) once(kind, name string, manifest []byte, fill func(dir string) error) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := sha256.Sum256(manifest)
	dir := filepath.Join(t.env.Cache, kind, name+"-"+hex.EncodeToString(sum[:6]))
	mark := filepath.Join(dir, ".complete")
	if _, err := os.Stat(mark); err == nil {
		return dir, nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return "", err
	}
	t.env.Say("installing %s (%s)", name, kind)
	if err := fill(dir); err != nil {
		return "", fmt.Errorf("install %s: %w", name, err)
	}
	return dir, os.WriteFile(mark, nil, 0o644)
}

// Jars fetches the dependencies of a Maven project (its pom.xml) and returns the folder that holds the jars.
func (t *Tools) Jars(ctx context.Context, name string, pom []byte) (string, error) {
	if _, err := t.Debian(ctx, "mvn", "maven"); err != nil {
		return "", err
	}
	dir, err := t.once("jars", name, pom, func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "pom.xml"), pom, 0o644); err != nil {
			return err
		}
		return t.env.Run(ctx, task.Command{Dir: dir, Args: []string{"mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"}})
	})
	return filepath.Join(dir, "lib"), err
}

// Javac compiles Java sources against the jars of a folder and returns the folder of classes.
func (t *Tools) Javac(ctx context.Context, name, lib string, sources ...string) (string, error) {
	if _, err := t.Debian(ctx, "javac", "default-jdk-headless"); err != nil {
		return "", err
	}
	manifest := []byte(lib)
	for _, s := range sources {
		b, err := os.ReadFile(s)
		if err != nil {
			return "", err
		}
		manifest = append(manifest, b...)
	}
	return t.once("classes", name, manifest, func(dir string) error {
		args := append([]string{"javac", "-nowarn", "-d", dir, "-cp", filepath.Join(lib, "*")}, sources...)
		return t.env.Run(ctx, task.Command{Args: args})
	})
}

// Node installs the packages of a package-lock.json and returns the node_modules folder.
func (t *Tools) Node(ctx context.Context, name string, packageJSON, lock []byte) (string, error) {
	if _, err := t.Debian(ctx, "npm", "npm"); err != nil {
		return "", err
	}
	manifest := append(append([]byte{}, packageJSON...), lock...)
	dir, err := t.once("node", name, manifest, func(dir string) error {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "package.json"), packageJSON, 0o644),
			os.WriteFile(filepath.Join(dir, "package-lock.json"), lock, 0o644)); err != nil {
			return err
		}
		return t.env.Run(ctx, task.Command{Dir: dir, Args: []string{"npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"}})
	})
	return filepath.Join(dir, "node_modules"), err
}

// Python makes a virtual environment with the given requirements.txt and returns its interpreter.
func (t *Tools) Python(ctx context.Context, name string, requirements []byte) (string, error) {
	if _, err := t.Debian(ctx, "python3", "python3-venv"); err != nil {
		return "", err
	}
	dir, err := t.once("python", name, requirements, func(dir string) error {
		list := filepath.Join(dir, "requirements.txt")
		if err := os.WriteFile(list, requirements, 0o644); err != nil {
			return err
		}
		if err := t.env.Run(ctx, task.Command{Args: []string{"python3", "-m", "venv", dir}}); err != nil {
			return err
		}
		return t.env.Run(ctx, task.Command{Args: []string{filepath.Join(dir, "bin", "pip"), "install", "-q", "--disable-pip-version-check", "-r", list}})
	})
	return filepath.Join(dir, "bin", "python"), err
}

// GoTool installs a Go program at a version ("module/path@v1.2.3") and returns it.
func (t *Tools) GoTool(ctx context.Context, program string) (string, error) {
	path, _, _ := strings.Cut(program, "@")
	name := filepath.Base(path)
	dir, err := t.once("go", name, []byte(program), func(dir string) error {
		return t.env.Run(ctx, task.Command{Env: []string{"GOBIN=" + dir}, Args: []string{"go", "install", program}})
	})
	return filepath.Join(dir, name), err
}

// Debian returns the path of a program, installing the Debian package that has it when no such program is there and
// this process may install it.
func (t *Tools) Debian(ctx context.Context, program, pkg string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return "", fmt.Errorf("%s is missing: install it (Debian's package is %s)", program, pkg)
	}
	t.env.Say("installing %s (Debian package %s)", program, pkg)
	apt := func(args ...string) error {
		return t.env.Run(ctx, task.Command{Env: []string{"DEBIAN_FRONTEND=noninteractive"}, Args: append([]string{"apt-get", "-qq", "-y"}, args...)})
	}
	if err := apt("install", pkg); err != nil { // the package lists may be missing or old
		if err := errors.Join(apt("update"), apt("install", pkg)); err != nil {
			return "", err
		}
	}
	return exec.LookPath(program)
}

// GoBuild builds a package of this repository into the cache and returns the program. It does so once: who has the program may run it while others
// ask for it.
func (t *Tools) GoBuild(ctx context.Context, pkg string) (string, error) {
	return t.goOnce(ctx, filepath.Base(pkg), "build", pkg)
}

// GoTest builds the tests of a package into the cache and returns the program, as GoBuild does.
func (t *Tools) GoTest(ctx context.Context, pkg string) (string, error) {
	return t.goOnce(ctx, filepath.Base(pkg)+".test", "test", "-c", pkg)
}

// goOnce has a command of go make a program, unless it has done so already.
func (t *Tools) goOnce(ctx context.Context, program, command string, args ...string) (string, error) {
	t.building.Lock()
	defer t.building.Unlock()
	bin := filepath.Join(t.env.Cache, "bin", program)
	what := strings.Join(append(args, command), " ")
	if t.built[what] {
		return bin, nil
	}
	err := t.env.Run(ctx, task.Command{Args: append([]string{"go", command, "-o", bin}, args...)})
	t.built[what] = err == nil
	return bin, err
}
