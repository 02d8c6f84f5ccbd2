//go:build !linux

package acceptance

import "time"

// Where there is no /proc nothing is measured, and the bounds hold trivially.

func (n *node) memory() int64      { return 0 }
func (n *node) cpu() time.Duration { return 0 }
func (n *node) descriptors() int   { return 0 }
func (n *node) maps() int          { return 0 }
func (n *node) peak() int64        { return 0 }

func processes(string) int { return 0 }
