// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/homedir"

	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/redact"
)

// ErrNoCluster is returned by FindConfig and New when there is no sign of a cluster: no
// file was given, there is none in the home directory, no context was requested, and
// the process is not in a Pod.
var ErrNoCluster = errors.New("no configuration found")

// inPod reports whether this is a Pod, by what rest.InClusterConfig looks for first. A
// Pod need not have a token to have probes.
func inPod() bool {
	return os.Getenv("KUBERNETES_SERVICE_HOST") != "" && os.Getenv("KUBERNETES_SERVICE_PORT") != ""
}

// defaultHealthAddress returns the address of the probes, unless Options have one.
func defaultHealthAddress() string {
	if inPod() {
		return podHealthAddress
	}
	return loopbackHealthAddress
}

// FindConfig returns the configuration of the cluster, from the first of:
//
//	the given kubeconfig file
//	the files in the variable KUBECONFIG, merged as kubectl merges them
//	the service account of the Pod, unless a context is requested
//	.kube/config in the home directory
//
// context is the context to use; empty: the current one. A given file that is missing
// or malformed is an error that says what to do. If nothing is found, the error lists
// the places, and is ErrNoCluster if there is no sign of a cluster. FindConfig sends no
// request.
func FindConfig(kubeconfig, context string) (*rest.Config, error) {
	return places{
		environ:   os.Getenv("KUBECONFIG"),
		home:      homedir.HomeDir(),
		inCluster: inCluster,
	}.find(kubeconfig, context)
}

// inCluster returns the configuration of the Pod. The error is rest.ErrNotInCluster
// only outside a Pod.
func inCluster() (*rest.Config, error) {
	cfg, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		if _, missing := os.Stat(ownership.ServiceAccount); missing == nil {
			err = fmt.Errorf("%s exists, but KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set", ownership.ServiceAccount)
		}
	}
	return cfg, err
}

type places struct {
	environ   string // value of KUBECONFIG
	home      string
	inCluster func() (*rest.Config, error)
}

func (p places) find(kubeconfig, context string) (*rest.Config, error) {
	if kubeconfig != "" {
		return load(context, `the flag -kubeconfig or Options.Kubeconfig`, kubeconfig)
	}
	looked := []string{"no -kubeconfig was given"}
	if files := slices.DeleteFunc(filepath.SplitList(p.environ), func(f string) bool { return f == "" }); len(files) > 0 {
		return load(context, "the environment variable KUBECONFIG", files...)
	}
	looked = append(looked, "KUBECONFIG is not set")

	trace := context != "" // whether a cluster was configured at all
	if context == "" {
		cfg, err := p.inCluster()
		if err == nil {
			return cfg, nil
		}
		if errors.Is(err, rest.ErrNotInCluster) {
			err = errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
		} else {
			trace = true
		}
		looked = append(looked, "this is no pod with a service account: "+err.Error())
	} else {
		looked = append(looked, fmt.Sprintf("the pod's service account was left out, since it has no context %q", context))
	}

	if p.home == "" {
		looked = append(looked, "there is no home directory")
	} else {
		file := filepath.Join(p.home, ".kube", "config")
		_, err := os.Stat(file)
		if err == nil {
			return load(context, "the home directory", file)
		}
		looked = append(looked, reason(err, file))
		trace = trace || !errors.Is(err, fs.ErrNotExist)
	}
	none := ErrNoCluster
	if trace {
		none = errors.New(ErrNoCluster.Error())
	}
	return nil, fmt.Errorf("find the cluster: %w; give -kubeconfig a file, or set KUBECONFIG. Looked at:\n\t%s", none, strings.Join(looked, "\n\t"))
}

// load reads and merges files, which by has named.
func load(context, by string, files ...string) (*rest.Config, error) {
	named := fmt.Sprintf("kubeconfig %q, named by %s", strings.Join(files, string(os.PathListSeparator)), by)
	var missing []string
	for _, file := range files {
		info, err := os.Stat(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, file)
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", named, err)
		case info.IsDir():
			return nil, fmt.Errorf("read %s: %s is a directory; name the file in it", named, file)
		}
	}
	// As for kubectl, some of several files may be missing.
	if len(missing) == len(files) {
		return nil, fmt.Errorf("read %s: %w; check the path, or leave it out to look in the usual places", named, fs.ErrNotExist)
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: files}
	merged, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read %s: it is malformed: %w; try \"kubectl config view\" on it, or create it again", named, redact.Config(err))
	}
	if err := usable(merged, context); err != nil {
		return nil, fmt.Errorf("read %s: %w", named, err)
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*merged, context, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", named, err)
	}
	return cfg, nil
}

// usable returns an error with advice if the context is missing or incomplete in cfg.
func usable(cfg *api.Config, context string) error {
	there := "it has none"
	if len(cfg.Contexts) > 0 {
		there = "there are: " + strings.Join(slices.Sorted(maps.Keys(cfg.Contexts)), ", ")
	}
	switch {
	case len(cfg.Clusters) == 0:
		return errors.New("it has no clusters; check that it is a kubeconfig and not empty")
	case context != "" && cfg.Contexts[context] == nil:
		return fmt.Errorf("it has no context %q; name another with -context (%s)", context, there)
	case context == "" && cfg.CurrentContext == "":
		return fmt.Errorf("it has no current context; name one with -context, or set it with \"kubectl config use-context\" (%s)", there)
	case context == "" && cfg.Contexts[cfg.CurrentContext] == nil:
		return fmt.Errorf("its current context %q is not in it; name another with -context (%s)", cfg.CurrentContext, there)
	}
	context = cmp.Or(context, cfg.CurrentContext)
	used := cfg.Contexts[context]
	cluster, user := cfg.Clusters[used.Cluster], cfg.AuthInfos[used.AuthInfo]
	switch {
	case cluster == nil:
		return fmt.Errorf("its context %q names cluster %q, which is not in it; the clusters in it are: %s",
			context, used.Cluster, strings.Join(slices.Sorted(maps.Keys(cfg.Clusters)), ", "))
	case cluster.Server == "":
		return fmt.Errorf("its cluster %q has no server; give it one with \"kubectl config set-cluster %s --server=https://…\"", used.Cluster, used.Cluster)
	case used.AuthInfo != "" && user == nil:
		// kubectl continues as anonymous, and is then refused without a reason.
		return fmt.Errorf("its context %q names user %q, which is not in it; log in to the cluster again, or name another context with -context (%s)",
			context, used.AuthInfo, there)
	}
	return nil
}

func reason(err error, file string) string {
	if errors.Is(err, fs.ErrNotExist) {
		return file + " does not exist"
	}
	return err.Error()
}
