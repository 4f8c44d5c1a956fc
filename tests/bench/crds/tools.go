//go:build tools

// Package tools names the programs that the bench builds from this module.
package tools

import (
	_ "sigs.k8s.io/controller-tools/cmd/controller-gen"
	_ "github.com/fluxcd/helm-controller/api/v2"
)
