//go:build !unix

package storagetest

func systemClauses() []Clause { return nil }

// diskUsage is unknown here.
func diskUsage(T, string) int64 { return 0 }
