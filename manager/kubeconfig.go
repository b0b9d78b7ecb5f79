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

	"github.com/flyball-dev/flyball/internal/confidential"
)

// ErrNoCluster is what FindConfig and New return where nobody has said anything
// about a cluster: no file was named, there is none in the home directory, no
// context was asked for, and this is no pod.
var ErrNoCluster = errors.New("no configuration found")

// serviceAccount is where a pod has its token.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// podNamespace is the variable that names the pod's namespace where serviceAccount
// does not: the token lies elsewhere, or the pod has none.
const podNamespace = "POD_NAMESPACE"

// ownNamespace is that of the pod; empty: this is none.
func ownNamespace() string {
	if named := os.Getenv(podNamespace); named != "" {
		return named
	}
	text, err := os.ReadFile(serviceAccount + "/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// FindConfig finds out how to reach the cluster. The first of these that is
// there decides:
//
//	the given kubeconfig file
//	the files of the variable KUBECONFIG, merged as kubectl merges them
//	the service account of the pod, unless a context is asked for
//	.kube/config in the home directory
//
// context is the context to use; empty: the current one. A file that was named
// and is missing or malformed is an error, which says what to do; when nothing
// is found the error lists where it was looked for, and is ErrNoCluster if there
// is no trace of a cluster. No request is sent.
func FindConfig(kubeconfig, context string) (*rest.Config, error) {
	return places{
		environ:   os.Getenv("KUBECONFIG"),
		home:      homedir.HomeDir(),
		inCluster: inCluster,
	}.find(kubeconfig, context)
}

// inCluster is the configuration of the pod, rest.ErrNotInCluster only if this
// is none.
func inCluster() (*rest.Config, error) {
	cfg, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		if _, missing := os.Stat(serviceAccount); missing == nil {
			err = fmt.Errorf("%s exists, but KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set", serviceAccount)
		}
	}
	return cfg, err
}

// places are where a configuration is looked for.
type places struct {
	environ   string // of KUBECONFIG
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

	trace := context != "" // of a cluster that somebody means
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

// load reads and merges the files that by has named.
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
	// Of several files some may be missing, as for kubectl.
	if len(missing) == len(files) {
		return nil, fmt.Errorf("read %s: %w; check the path, or leave it out to look in the usual places", named, fs.ErrNotExist)
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: files}
	merged, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read %s: it is malformed: %w; try \"kubectl config view\" on it, or create it again", named, confidential.Config(err))
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

// usable says what a person can do about a configuration without the context.
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
		// kubectl goes on as anonymous, and then is refused without a reason.
		return fmt.Errorf("its context %q names user %q, which is not in it; log in to the cluster again, or name another context with -context (%s)",
			context, used.AuthInfo, there)
	}
	return nil
}

// reason is why file could not be looked at.
func reason(err error, file string) string {
	if errors.Is(err, fs.ErrNotExist) {
		return file + " does not exist"
	}
	return err.Error()
}
