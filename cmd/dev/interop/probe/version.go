package probe

import "runtime/debug"

// ModuleVersion is the version of a Go module that this binary was built with, "unknown" when it was not.
func ModuleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
}
