// Command helm-controller-stand-in plays helm-controller in the tests: it
// renders, applies, waits and uninstalls with Helm, and writes HelmRelease
// status in the order and form of recorded runs. See README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options are the settings of one process.
type options struct {
	concurrent        int
	requeueDependency time.Duration
	pollInterval      time.Duration
	shortestAction    time.Duration
	cancelledPause    time.Duration
	cancelOnNewer     bool
	namespace         string
	selector          labels.Selector
	healthAddress     string
}

// fieldManager owns what is applied and written; the name of the controller
// that is being played, because tests look for it in managedFields.
const fieldManager = "helm-controller"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "helm-controller-stand-in:", err)
		os.Exit(1)
	}
}

func run() error {
	opts, err := parseFlags()
	if err != nil {
		return err
	}
	logger := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	kube.ManagedFieldsManager = fieldManager

	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, -1
	manager, err := newManager(config, opts)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func parseFlags() (options, error) {
	var opts options
	var gates, selector string
	var allNamespaces bool
	flag.IntVar(&opts.concurrent, "concurrent", 4, "releases reconciled at the same time; one that waits holds its place")
	flag.DurationVar(&opts.requeueDependency, "requeue-dependency", 30*time.Second, "pause after a dependency or source was found not ready")
	flag.DurationVar(&opts.pollInterval, "poll-interval", 5*time.Second, "pause between two looks at waited-for objects")
	flag.DurationVar(&opts.shortestAction, "shortest-action", 400*time.Millisecond, "an install or upgrade is not reported done sooner than this after its reconcile began")
	flag.DurationVar(&opts.cancelledPause, "cancelled-pause", 10*time.Second, "pause after a wait that was cancelled by a newer revision")
	flag.StringVar(&gates, "feature-gates", "", "only CancelHealthCheckOnNewRevision=true|false is known")
	flag.StringVar(&selector, "watch-label-selector", "", "only HelmReleases with these labels")
	flag.BoolVar(&allNamespaces, "watch-all-namespaces", true, "false: only the namespace in RUNTIME_NAMESPACE")
	for _, ignored := range []string{"events-addr", "metrics-addr"} {
		flag.String(ignored, "", "accepted for the sake of the harness; there is no such thing here")
	}
	flag.StringVar(&opts.healthAddress, "health-addr", "0", "address of /healthz and /readyz; 0 is none")
	flag.Parse()

	if flag.NArg() > 0 {
		return opts, fmt.Errorf("unexpected arguments: %v", flag.Args())
	}
	if !allNamespaces {
		if opts.namespace = os.Getenv("RUNTIME_NAMESPACE"); opts.namespace == "" {
			return opts, errors.New("--watch-all-namespaces=false needs RUNTIME_NAMESPACE")
		}
	}
	parsed, err := labels.Parse(selector)
	if err != nil {
		return opts, err
	}
	opts.selector = parsed
	return opts, opts.setGates(gates)
}

func (o *options) setGates(list string) error {
	for _, gate := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(gate, "=")
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("feature gate %q: %w", gate, err)
		}
		if name != "CancelHealthCheckOnNewRevision" {
			return fmt.Errorf("feature gate %q is not known to the stand-in", name)
		}
		o.cancelOnNewer = on
	}
	return nil
}
