package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
)

// deciderTypes names the state machine of each room of the broker that decides.
func deciderTypes() map[string]string {
	return map[string]string{
		"core/broker/internal/partition":   "state",
		"core/broker/internal/group":       "Group",
		"core/broker/internal/txn":         "Transaction",
		"core/broker/internal/controller":  "Machine",
		"core/broker/internal/replication": "machine",
	}
}

// deciders: the methods of a decider do no I/O, start nothing, wait for nothing and don't ask for the time; its fields
// hold nothing that is for several goroutines. A room that decides must have its decider named.
func deciders(t *Tree) (faults []string, applied int) {
	found := map[string]bool{}
	rooms := map[string]bool{}
	for _, f := range t.Files {
		if f.Test {
			continue
		}
		switch f.Dir {
		case "core/broker/internal/partition", "core/broker/internal/group", "core/broker/internal/txn", "core/broker/internal/controller",
			"core/broker/internal/replication":
			rooms[f.Dir] = true
		}
		name, ok := deciderTypes()[f.Dir]
		if !ok {
			continue
		}
		for _, decl := range f.AST.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if receiver(d) == name {
					found[f.Dir] = true
					applied++
					faults = append(faults, impure(f, d, name+"."+d.Name.Name)...)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.Name == name {
						faults = append(faults, impure(f, s, name)...)
					}
				}
			}
		}
	}
	for room := range rooms {
		if !found[room] {
			faults = append(faults, fmt.Sprintf("%s: the decider %q has no methods: name the type that decides in this rule", room, deciderTypes()[room]))
		}
	}
	return faults, applied
}

// receiver gives the name of the type that a function is a method of.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) != 1 {
		return ""
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// impure lists what a state machine must not do.
func impure(f *File, root ast.Node, where string) (faults []string) {
	fault := func(n ast.Node, what string) {
		faults = append(faults, fmt.Sprintf("%s: %s %s", f.At(n), where, what))
	}
	ast.Inspect(root, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.GoStmt:
			fault(x, "starts a goroutine")
		case *ast.SelectStmt, *ast.SendStmt:
			fault(x, "waits for a channel")
		case *ast.ChanType:
			fault(x, "uses a channel")
		case *ast.UnaryExpr:
			if x.Op == token.ARROW {
				fault(x, "waits for a channel")
			}
		case *ast.SelectorExpr:
			pkg, ok := x.X.(*ast.Ident)
			if !ok || !isForeign(pkg) {
				return true
			}
			switch pkg.Name {
			case "os", "net", "syscall", "unix", "ioutil":
				fault(x, "does I/O: "+pkg.Name+"."+x.Sel.Name)
			case "sync", "atomic", "context":
				fault(x, "is for several goroutines: "+pkg.Name+"."+x.Sel.Name)
			case "rand":
				fault(x, "throws dice: rand."+x.Sel.Name)
			case "slog":
				fault(x, "logs: slog."+x.Sel.Name)
			case "time":
				switch x.Sel.Name {
				case "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick":
					fault(x, "asks for the time: time."+x.Sel.Name)
				}
			}
		}
		return true
	})
	return faults
}
