//go:build linux || darwin

package log

import "golang.org/x/sys/unix"

// Space is how many bytes the file system of the directory has, and how many of them are left for this user.
func (d *Dir) Space() (total, usable int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.path, &st); err != nil {
		return -1, -1, err
	}
	return int64(st.Blocks) * int64(st.Bsize), int64(st.Bavail) * int64(st.Bsize), nil
}
