package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

// properties: each field of the structs through which the broker sees Kafka's properties is read somewhere. Fields are
// told by name alone, so one that shares its name with another struct's may slip through.
func properties(t *Tree) (faults []string, applied int) {
	const room = "core/config/kafka"
	structs := []string{"BrokerConfig", "TopicConfig"}
	read := map[string]bool{}
	type field struct{ at, owner, name string }
	var fields []field
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.SelectorExpr:
				read[x.Sel.Name] = true
			case *ast.TypeSpec:
				s, ok := x.Type.(*ast.StructType)
				if !ok || f.Dir != room || !slices.Contains(structs, x.Name.Name) {
					return true
				}
				for _, list := range s.Fields.List {
					for _, name := range list.Names {
						fields = append(fields, field{f.At(name), x.Name.Name, name.Name})
					}
				}
			}
			return true
		})
	}
	for _, one := range fields {
		applied++
		if !read[one.name] {
			faults = append(faults, fmt.Sprintf("%s: nothing reads %s.%s, so its property does nothing", one.at, one.owner, one.name))
		}
	}
	return faults, applied
}
