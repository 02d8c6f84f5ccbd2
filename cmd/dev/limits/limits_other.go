//go:build !linux

package limits

import (
	"context"
	"errors"
)

var errLinux = errors.New("the machine's limits are measured on Linux only")

// Append is for Linux only.
func Append(context.Context, string, int, int64) (Cost, error) { return Cost{}, errLinux }

// Touch is for Linux only.
func Touch(context.Context, int64) error { return errLinux }

// Sendfile is for Linux only.
func Sendfile(context.Context, string, int, int64) (Cost, error) { return Cost{}, errLinux }

// Answer is for Linux only.
func Answer(context.Context, int, int, int64) (Cost, error) { return Cost{}, errLinux }

// Send is for Linux only.
func Send(context.Context, int, int64) (sender, receiver Cost, err error) {
	return Cost{}, Cost{}, errLinux
}
