//go:build tools

// Package tools names the programs that the bench builds from this module.
package tools

import (
	_ "github.com/fluxcd/source-controller"
	_ "github.com/fluxcd/kustomize-controller"
)
