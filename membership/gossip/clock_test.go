package gossip

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOnlyMonotonicTimeDecides looks for what makes a time one of the wall clock alone: a clock that is stepped would end sessions before their
// time, or never. Times come from time.Now, are added to and compared, and go nowhere: durations do.
func TestOnlyMonotonicTimeDecides(t *testing.T) {
	// Methods and functions that lose the monotonic reading, or make times without one.
	suspects := []string{"Round", "Truncate", "Unix", "UnixMilli", "UnixMicro", "UnixNano", "UTC", "Local", "In", "Date", "AddDate", "Parse", "ParseInLocation"}
	// Where the wall clock is meant, or nothing is compared.
	allowed := map[string]string{
		"recover.go":                 "UTC",   // in the names of directories
		"internal/pool/transport.go": "Unix",  // a deadline that is over
		"internal/pool/pool.go":      "Round", // of a number
	}
	found := map[string][]string{}
	files := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(suspects, f.Sel.Name) {
					found[filepath.ToSlash(path)] = append(found[filepath.ToSlash(path)], f.Sel.Name)
				}
			}
			return true
		})
		return nil
	}))
	require.Greater(t, files, 40)
	for path, names := range found {
		for _, name := range names {
			require.Equal(t, allowed[path], name, "%s: a time without a monotonic reading", path)
		}
	}
	require.Len(t, found, len(allowed), "an exception that isn't needed any more")
}
