//go:build tools

// Package tools names the programs that the bench builds from this module.
package tools

import (
	_ "github.com/argoproj/argo-cd/v3/cmd"
)
