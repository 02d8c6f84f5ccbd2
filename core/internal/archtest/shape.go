package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

const (
	maxLines   = 600
	maxMethods = 10
	// longFile and wideInterface begin the comment that says why a limit doesn't hold.
	longFile      = "Longer than 600 lines:"
	wideInterface = "More than ten methods:"
)

// sizes: hand-written files have at most 600 lines and interfaces at most ten methods, or a comment that says why.
func sizes(t *Tree) (faults []string, applied int) {
	for _, f := range t.Files {
		if f.Generated {
			continue
		}
		applied++
		if f.Lines > maxLines && !mentions(f.AST.Comments, longFile) {
			faults = append(faults, fmt.Sprintf("%s has %d lines, and no comment %q", f.Path, f.Lines, longFile))
		}
		for _, decl := range f.AST.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range d.Specs {
				s, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				face, ok := s.Type.(*ast.InterfaceType)
				if !ok {
					continue
				}
				if n := methods(face); n > maxMethods && !mentions([]*ast.CommentGroup{d.Doc, s.Doc}, wideInterface) {
					faults = append(faults, fmt.Sprintf("%s: the interface %s has %d methods, and no comment %q", f.At(s), s.Name.Name, n, wideInterface))
				}
			}
		}
	}
	return faults, applied
}

// methods counts the methods that an interface names itself; embedded ones were counted where they are declared.
func methods(face *ast.InterfaceType) (n int) {
	for _, m := range face.Methods.List {
		if _, isMethod := m.Type.(*ast.FuncType); isMethod {
			n += len(m.Names)
		}
	}
	return n
}

func mentions(groups []*ast.CommentGroup, text string) bool {
	for _, group := range groups {
		if group != nil && strings.Contains(strings.ReplaceAll(group.Text(), "\n", " "), text) {
			return true
		}
	}
	return false
}

// topLevel: nothing stands at the top level but what the house is made of. Hidden names and what .gitignore keeps out
// of the repository are nobody's business.
func topLevel(t *Tree) (faults []string, applied int) {
	house := map[string]bool{}
	for _, name := range []string{
		"core/", "plugins/", "storage-mmap/", "storage-sendfile/", "membership/", "cmd/", "configs/",
		"go.mod", "go.sum", "README.md", "LICENSE", "CHANGELOG.md",
	} {
		house[name] = true
	}
	for _, name := range t.Top {
		switch {
		case house[name]:
			applied++
		case strings.HasPrefix(name, "."), name == "bin/", name == "data/":
		case strings.HasSuffix(name, ".test"), strings.HasSuffix(name, ".out"), strings.HasSuffix(name, ".prof"):
		default:
			faults = append(faults, name+" has no place at the top level")
		}
	}
	return faults, applied
}

// unfinished: no marks of work left to do. What a program writes has the words of that program.
func unfinished(t *Tree) (faults []string, applied int) {
	mark := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b|(?i)not (yet )?implem` + `ented`)
	for _, f := range t.Files {
		if f.Generated {
			continue
		}
		applied++
		for _, group := range f.AST.Comments {
			if found := mark.FindString(group.Text()); found != "" {
				faults = append(faults, fmt.Sprintf("%s: a comment says %q", f.At(group), found))
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && !f.Test {
				if found := mark.FindString(lit.Value); found != "" {
					faults = append(faults, fmt.Sprintf("%s: a text says %q", f.At(lit), found))
				}
			}
			return true
		})
	}
	return faults, applied
}

// printing: outside of cmd nothing prints, logs through package log, or ends the process.
func printing(t *Tree) (faults []string, applied int) {
	for _, f := range t.Files {
		if f.Test || f.Dir == "cmd" || below(f.Dir, "cmd", "plugins/examples") {
			continue
		}
		applied++
		ast.Inspect(f.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch fun := call.Fun.(type) {
			case *ast.Ident:
				if isForeign(fun) && (fun.Name == "print" || fun.Name == "println") {
					faults = append(faults, f.At(call)+": calls "+fun.Name)
				}
			case *ast.SelectorExpr:
				pkg, ok := fun.X.(*ast.Ident)
				if !ok || !isForeign(pkg) {
					return true
				}
				full := pkg.Name + "." + fun.Sel.Name
				if strings.HasPrefix(full, "fmt.Print") || full == "os.Exit" || imports(f, "log") && pkg.Name == "log" {
					faults = append(faults, f.At(call)+": calls "+full)
				}
			}
			return true
		})
	}
	return faults, applied
}

func imports(f *File, imported string) bool {
	for _, i := range f.Imports {
		if i == imported {
			return true
		}
	}
	return false
}

// skipping: no test calls Skip. It applies to suites too, which are no _test.go files. A property test may skip an action
// that the state doesn't allow: that is rapid's Skip, not testing's.
func skipping(t *Tree) (faults []string, applied int) {
	for _, f := range t.Files {
		applied++
		ast.Inspect(f.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			on, ok := fun.X.(*ast.Ident)
			if ok && isTesting(on) && (fun.Sel.Name == "Skip" || fun.Sel.Name == "Skipf" || fun.Sel.Name == "SkipNow") {
				faults = append(faults, f.At(call)+": skips")
			}
			return true
		})
	}
	return faults, applied
}
