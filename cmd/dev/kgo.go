package main

import "github.com/spf13/cobra"

func (d *dev) kgoCommand() *cobra.Command { return &cobra.Command{Use: "kgo"} }
func (d *dev) testCommand() *cobra.Command { return &cobra.Command{Use: "test"} }
func (d *dev) lintCommand() *cobra.Command { return &cobra.Command{Use: "lint"} }
