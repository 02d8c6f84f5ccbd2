package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
)

// packageState: no function init, and no package-level variable that is written to, or is made for being written to.
//
// A variable that is set where it is declared and never again is a constant that Go has no word for: an error, a
// table, a compiled pattern. A sync.Pool is let through: it holds nothing that anybody can see.
func packageState(t *Tree) (faults []string, applied int) {
	packages := map[string][]*File{}
	for _, f := range t.Files {
		if !f.Test && !f.Generated {
			packages[f.Dir] = append(packages[f.Dir], f)
		}
	}
	for _, f := range t.Files {
		if f.Test || f.Generated {
			continue
		}
		applied++
		for _, decl := range f.AST.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					faults = append(faults, f.At(d)+": func init")
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					faults = append(faults, checkVars(f, d, packages[f.Dir])...)
				}
			}
		}
	}
	return faults, applied
}

func checkVars(f *File, d *ast.GenDecl, siblings []*File) (faults []string) {
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		for i, name := range v.Names {
			if name.Name == "_" {
				continue
			}
			if what := madeForWriting(v.Type); what != "" {
				faults = append(faults, fmt.Sprintf("%s: the package-level variable %s is a %s", f.At(name), name.Name, what))
				continue
			}
			if i < len(v.Values) {
				if what := madeForWriting(literalType(v.Values[i])); what != "" {
					faults = append(faults, fmt.Sprintf("%s: the package-level variable %s is a %s", f.At(name), name.Name, what))
					continue
				}
			}
			for _, sibling := range siblings {
				if at := written(sibling, name.Name); at != nil {
					faults = append(faults, fmt.Sprintf("%s: the package-level variable %s is written to", sibling.At(at), name.Name))
				}
			}
		}
	}
	return faults
}

// literalType gives the type of a composite literal, of &literal, or of make(type).
func literalType(e ast.Expr) ast.Expr {
	switch x := e.(type) {
	case *ast.CompositeLit:
		return x.Type
	case *ast.UnaryExpr:
		return literalType(x.X)
	case *ast.CallExpr:
		if fun, ok := x.Fun.(*ast.Ident); ok && (fun.Name == "make" || fun.Name == "new") && len(x.Args) > 0 {
			if _, isMap := x.Args[0].(*ast.MapType); isMap {
				return &ast.Ident{Name: "empty map"}
			}
			return x.Args[0]
		}
	}
	return nil
}

// madeForWriting names a type of which a variable that nobody writes to makes no sense.
func madeForWriting(t ast.Expr) string {
	switch x := t.(type) {
	case *ast.ChanType:
		return "channel"
	case *ast.StarExpr:
		return madeForWriting(x.X)
	case *ast.Ident:
		if x.Name == "empty map" {
			return x.Name
		}
	case *ast.IndexExpr:
		return madeForWriting(x.X)
	case *ast.SelectorExpr:
		pkg, ok := x.X.(*ast.Ident)
		if ok && (pkg.Name == "sync" && x.Sel.Name != "Pool" || pkg.Name == "atomic") {
			return pkg.Name + "." + x.Sel.Name
		}
	}
	return ""
}

// written finds a place in a file that writes to a package-level variable, takes its address, or deletes from it.
func written(f *File, name string) (at ast.Node) {
	is := func(e ast.Expr) bool {
		root := rootOf(e)
		return root != nil && root.Name == name && isPackageLevel(f, root)
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if at != nil {
			return false
		}
		switch x := n.(type) {
		case *ast.AssignStmt:
			if x.Tok == token.DEFINE {
				return true
			}
			for _, left := range x.Lhs {
				if is(left) {
					at = x
				}
			}
		case *ast.IncDecStmt:
			if is(x.X) {
				at = x
			}
		case *ast.UnaryExpr:
			if x.Op == token.AND && is(x.X) {
				at = x
			}
		case *ast.CallExpr:
			if fun, ok := x.Fun.(*ast.Ident); ok && (fun.Name == "delete" || fun.Name == "clear") && len(x.Args) > 0 && is(x.Args[0]) {
				at = x
			}
		}
		return true
	})
	return at
}

// rootOf gives the identifier that an expression such as x.f[i] begins with.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		default:
			return nil
		}
	}
}
