// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

// finder finds an operator's Pod in a cluster.
type finder struct {
	client *client.Client
	// namespace to search if the user may not search all.
	namespace string
}

func newFinder(cfg *rest.Config, namespace string) (*finder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, authenticationv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(cfg, scheme, client.Options{Logger: funcr.New(func(string, string) {}, funcr.Options{})})
	return &finder{c, namespace}, err
}

// candidate is a Pod that may be meant, and the Lease that it holds, or shares.
type candidate struct {
	pod   *corev1.Pod
	lease string
	// member is the name of its own Lease if it shares the objects with other replicas; empty: it does
	// not.
	member string
}

func (c candidate) String() string {
	text := "Pod " + c.pod.Namespace + "/" + c.pod.Name
	switch {
	case c.member != "":
		text += ", which shares the Lease " + c.lease
	case c.lease != "":
		text += ", which holds the Lease " + c.lease
	}
	return text
}

// find returns the Pod of the operator that name or selector mean: name is [NAMESPACE/]NAME of a
// Lease, Deployment or Pod. With neither it is the only one that holds a Lease
// outside of kube-system. Several Pods are the replicas of one operator that share its objects.
func (f *finder) find(ctx context.Context, name, selector string) ([]candidate, error) {
	var found []candidate
	var err error
	what := "Pod that holds a Lease"
	switch {
	case selector != "":
		what = "Pod with the labels " + selector
		found, err = f.bySelector(ctx, selector)
	case name != "":
		what = "Lease, Deployment or Pod with the name " + name
		found, err = f.byName(ctx, name)
	default:
		var leases []*coordinationv1.Lease
		if leases, err = listed[*coordinationv1.Lease](ctx, f, ""); err == nil {
			leases = slices.DeleteFunc(leases, func(l *coordinationv1.Lease) bool {
				return l.Namespace == metav1.NamespaceSystem || isShared(l) && !isMember(l)
			})
			found, err = f.holders(ctx, leases)
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("find the operator: %w\nname its Pod by --operator NAMESPACE/NAME, in a namespace where you may list Pods", err)
	case err != nil:
		return nil, fmt.Errorf("find the operator: %w", err)
	}
	return choose(found, what)
}

// choose returns the only candidate that runs, or the only one of those that holds a Lease, or all
// those that share one.
func choose(found []candidate, what string) ([]candidate, error) {
	ended := len(found)
	found = slices.DeleteFunc(found, func(c candidate) bool {
		return c.pod.Status.Phase != corev1.PodRunning || c.pod.DeletionTimestamp != nil
	})
	ended -= len(found)
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	leading := slices.DeleteFunc(slices.Clone(found), func(c candidate) bool { return c.lease == "" })
	switch {
	case len(found) == 1:
		return found, nil
	case len(leading) == 1 || shareOne(leading):
		return leading, nil
	case len(found) == 0 && ended > 0:
		return nil, fmt.Errorf("there is a %s, but it does not run", what)
	case len(found) == 0:
		return nil, fmt.Errorf("there is no %s; name the operator by --operator [NAMESPACE/]NAME of its Lease, Deployment or Pod, "+
			"or by -l with the labels of its Pod, or a program on this machine by --address", what)
	}
	rows := []cells{{"NAMESPACE", "POD", "LEASE"}}
	for _, c := range found {
		rows = append(rows, cells{c.pod.Namespace, c.pod.Name, c.lease})
	}
	return nil, fmt.Errorf("several Pods can be meant; choose one by --operator NAMESPACE/POD:\n%s", strings.TrimSpace(table(rows)))
}

func (f *finder) bySelector(ctx context.Context, text string) ([]candidate, error) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the selector -l %q: %w", text, err)
	}
	pods, err := listed[*corev1.Pod](ctx, f, "", client.MatchingSelector{Selector: selector})
	if err != nil {
		return nil, err
	}
	return f.withLeases(ctx, pods), nil
}

// byName returns the holders of the Leases of a name, or else the Pods of its Deployments, or else
// the Pods.
func (f *finder) byName(ctx context.Context, text string) ([]candidate, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found {
		namespace, name = "", text
	}
	named := client.MatchingFields{"metadata.name": name}
	leases, refused := listed[*coordinationv1.Lease](ctx, f, namespace, named)
	leases, err := f.withMembers(ctx, leases)
	if err != nil {
		return nil, err
	}
	if held, err := f.holders(ctx, leases); err != nil || len(held) > 0 {
		return held, err
	}
	deployments, err := listed[*appsv1.Deployment](ctx, f, namespace, named)
	refused = errors.Join(refused, err)
	var pods []*corev1.Pod
	for _, d := range deployments {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil {
			return nil, err
		}
		of, err := listed[*corev1.Pod](ctx, f, d.Namespace, client.MatchingSelector{Selector: selector})
		if err != nil {
			return nil, err
		}
		pods = append(pods, of...)
	}
	if len(pods) == 0 {
		pods, err = listed[*corev1.Pod](ctx, f, namespace, named)
		refused = errors.Join(refused, err)
	}
	if len(pods) == 0 && refused != nil {
		return nil, refused
	}
	return f.withLeases(ctx, pods), nil
}

// holders returns the Pods that hold Leases.
func (f *finder) holders(ctx context.Context, leases []*coordinationv1.Lease) (out []candidate, err error) {
	in := map[string][]*corev1.Pod{}
	for _, lease := range leases {
		if hostOf(lease) == "" || lease.Namespace == corev1.NamespaceNodeLease {
			continue
		}
		pods, known := in[lease.Namespace]
		if !known {
			if pods, err = listed[*corev1.Pod](ctx, f, lease.Namespace); err != nil {
				return nil, err
			}
			in[lease.Namespace] = pods
		}
		for _, pod := range pods {
			same := func(c candidate) bool { return c.pod == pod } // it holds several, such as of its shards
			if holds(lease, pod) && !slices.ContainsFunc(out, same) {
				out = append(out, candidateOf(pod, lease))
			}
		}
	}
	return out, nil
}

// withLeases says which Pods hold a Lease of their namespace. Without the right to list Leases it
// says none.
func (f *finder) withLeases(ctx context.Context, pods []*corev1.Pod) (out []candidate) {
	in := map[string][]*coordinationv1.Lease{}
	for _, pod := range pods {
		leases, known := in[pod.Namespace]
		if !known && len(pods) > 1 {
			leases, _ = listed[*coordinationv1.Lease](ctx, f, pod.Namespace)
			in[pod.Namespace] = leases
		}
		one := candidate{pod: pod}
		of := func(l *coordinationv1.Lease) bool { return holds(l, pod) && (isMember(l) || !isShared(l)) }
		if i := slices.IndexFunc(leases, of); i >= 0 {
			one = candidateOf(pod, leases[i])
		}
		out = append(out, one)
	}
	return out
}

// hostOf returns the host name of the holder. Its identity is hostname_chance, as Flyball and
// controller-runtime write it.
func hostOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	identity := *lease.Spec.HolderIdentity
	if isShared(lease) {
		return hostOfMember(lease.Labels[sharingLabel], identity)
	}
	if i := strings.LastIndex(identity, "_"); i >= 0 {
		return identity[:i]
	}
	return identity
}

// longestHost is what Linux keeps of the name of a Pod as its host name.
const longestHost = 63

func holds(lease *coordinationv1.Lease, pod *corev1.Pod) bool {
	host := hostOf(lease)
	switch {
	case lease.Namespace != pod.Namespace:
		return false
	case isMember(lease) && lease.Annotations[podAnnotation] != "":
		return lease.Annotations[podAnnotation] == pod.Name
	case host == "":
		return false
	case isShared(lease):
		clean := strings.ReplaceAll(pod.Name, ".", "-")
		return clean == host || len(host) >= longestOfMember && strings.HasSuffix(clean, host)
	case pod.Spec.HostNetwork:
		return host == pod.Spec.NodeName
	case pod.Spec.Hostname != "":
		return host == pod.Spec.Hostname
	}
	return host == pod.Name || len(pod.Name) > longestHost && host == strings.TrimRight(pod.Name[:longestHost], "-.")
}

// listed returns the objects of a kind in a namespace. Empty: in all, or in the finder's own if
// the user may not list them in all.
func listed[T kube.Object](ctx context.Context, f *finder, namespace string, opts ...client.Option) ([]T, error) {
	if namespace == "" {
		all, err := collect(client.List[T](ctx, f.client, opts...))
		if !apierrors.IsForbidden(err) {
			return all, err
		}
		namespace = f.namespace
	}
	return collect(client.List[T](ctx, f.client, append(slices.Clone(opts), client.InNamespace(namespace))...))
}

func collect[T any](objects func(yield func(T, error) bool)) (out []T, err error) {
	for obj, err := range objects {
		if err != nil {
			return nil, err
		}
		out = append(out, obj)
	}
	return out, nil
}

// defaultPort is that of Options.MetricsAddress.
const defaultPort = 8080

// portOf returns the port of a Pod's metrics: that of a container which is named so, or that of
// the flag -metrics-bind-address.
func portOf(pod *corev1.Pod) int {
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name == "metrics" || p.Name == "http-metrics" || p.Name == "https-metrics" {
				return int(p.ContainerPort)
			}
		}
	}
	for _, container := range pod.Spec.Containers {
		for _, arg := range append(slices.Clone(container.Command), container.Args...) {
			address, isFlag := strings.CutPrefix(strings.TrimLeft(arg, "-"), "metrics-bind-address=")
			_, port, err := net.SplitHostPort(address)
			if number, bad := strconv.Atoi(port); isFlag && err == nil && bad == nil && number > 0 {
				return number
			}
		}
	}
	return defaultPort
}

// tokenFor requests a token of ten minutes for a ServiceAccount.
func (f *finder) tokenFor(ctx context.Context, namespace, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	given := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}
	err := f.client.SubResource("token").Create(ctx, account, given)
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; the verb create of serviceaccounts/token allows it", err)
	}
	return given.Status.Token, err
}
