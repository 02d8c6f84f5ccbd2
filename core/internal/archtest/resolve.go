package archtest

import "go/ast"

// The parser's own resolution of names is deprecated because it knows one file at a time and no types. That is just
// what is needed here: whether a name is declared inside of a function of the file.

// isForeign reports whether a file declares nothing that an identifier could mean: it is a package's name, something
// predeclared, or declared in another file of the package.
func isForeign(id *ast.Ident) bool {
	return id.Obj == nil //nolint:staticcheck // see above
}

// isPackageLevel reports whether an identifier means something declared at the top of this or another file, and
// nothing local.
func isPackageLevel(f *File, id *ast.Ident) bool {
	return isForeign(id) || f.AST.Scope.Lookup(id.Name) == id.Obj //nolint:staticcheck // see above
}

// isTesting reports whether an identifier is a parameter of a type of package testing.
func isTesting(id *ast.Ident) bool {
	if isForeign(id) {
		return false
	}
	field, ok := id.Obj.Decl.(*ast.Field) //nolint:staticcheck // see above
	if !ok {
		return false
	}
	t := field.Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	name, ok := t.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := name.X.(*ast.Ident)
	return ok && pkg.Name == "testing"
}
