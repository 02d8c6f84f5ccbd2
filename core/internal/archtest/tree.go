package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Module is the path that imports within the house begin with.
const Module = "github.com/barnabas-mq/barnabas"

// Tree is a source tree, parsed.
type Tree struct {
	Top   []string // names at the top level, folders with a "/" behind
	Files []*File
}

// File is one Go file.
type File struct {
	Path      string // from the root, with slashes
	Dir       string // the package's folder, from the root; "" is the root
	Imports   []string
	Test      bool // *_test.go
	Generated bool // carries Go's mark for generated files
	Lines     int
	AST       *ast.File
	fset      *token.FileSet
}

// At gives "file:line" of a node.
func (f *File) At(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.Path, f.fset.Position(n.Pos()).Line)
}

// Load parses the Go files below the root of fsys. Folders that the go command ignores are left out: hidden ones,
// testdata, and those that begin with "_".
func Load(fsys fs.FS) (*Tree, error) {
	tree := &Tree{}
	fset := token.NewFileSet()
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if name != "." && !strings.Contains(name, "/") {
			if entry.IsDir() {
				tree.Top = append(tree.Top, base+"/")
			} else {
				tree.Top = append(tree.Top, base)
			}
		}
		if entry.IsDir() {
			if name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		file, err := parse(fset, fsys, name)
		if err != nil {
			return err
		}
		tree.Files = append(tree.Files, file)
		return nil
	})
	return tree, err
}

func parse(fset *token.FileSet, fsys fs.FS, name string) (*File, error) {
	source, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(fset, name, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	file := &File{
		Path: name, Dir: path.Dir(name), Test: strings.HasSuffix(name, "_test.go"), Generated: ast.IsGenerated(parsed),
		Lines: strings.Count(string(source), "\n"), AST: parsed, fset: fset,
	}
	if file.Dir == "." {
		file.Dir = ""
	}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		file.Imports = append(file.Imports, imported)
	}
	return file, nil
}

// inHouse gives the folder that an import path within the module stands for.
func inHouse(imported string) (dir string, ok bool) {
	if imported == Module {
		return "", true
	}
	return strings.CutPrefix(imported, Module+"/")
}

// isStandard reports whether an import path is the standard library's: its first element has no dot.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// below reports whether a folder is one of the given ones or lies below it.
func below(dir string, tops ...string) bool {
	for _, top := range tops {
		if dir == top || strings.HasPrefix(dir, top+"/") {
			return true
		}
	}
	return false
}
