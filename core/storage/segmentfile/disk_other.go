//go:build !unix

package segmentfile

// syncDir does nothing: these systems have no call that makes a directory durable; the file's own sync has to do.
func syncDir(string) error { return nil }
