//go:build !linux

package bench

import "errors"

// Measure reads what a process has used. Only Linux tells.
func Measure(int) (Usage, error) {
	return Usage{}, errors.New("what a process uses can only be measured on Linux: leave --pid out")
}
