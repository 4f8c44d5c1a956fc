//go:build tools

// Package tools names the programs that the bench builds from this module.
package tools

import (
	_ "helm.sh/helm/v4/cmd/helm"
)
