// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// writer writes ConfigMaps in the namespace default by one kind of client.
type writer struct {
	create func(ctx context.Context, name, value string) error
	update func(ctx context.Context, name, value string) error
	patch  func(ctx context.Context, name, value string) error
	apply  func(ctx context.Context, name, value string) error
	remove func(ctx context.Context, name string) error
	clear  func(ctx context.Context) error
}

func mergePatch(value string) []byte {
	patch, _ := json.Marshal(map[string]any{"data": map[string]string{"v": value}})
	return patch
}

func applied(name, value string) []byte {
	patch, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]string{"v": value}})
	return patch
}

// withClientset writes by a clientset of client-go.
func withClientset(t *testing.T, cfg *rest.Config, contentType string) writer {
	cfg.ContentType = contentType
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	maps := api.CoreV1().ConfigMaps("default")
	object := func(name, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"v": value}}
	}
	return writer{
		create: func(ctx context.Context, name, value string) error {
			_, err := maps.Create(ctx, object(name, value), metav1.CreateOptions{})
			return err
		},
		update: func(ctx context.Context, name, value string) error {
			_, err := maps.Update(ctx, object(name, value), metav1.UpdateOptions{})
			return err
		},
		patch: func(ctx context.Context, name, value string) error {
			_, err := maps.Patch(ctx, name, types.MergePatchType, mergePatch(value), metav1.PatchOptions{})
			return err
		},
		apply: func(ctx context.Context, name, value string) error {
			_, err := maps.Apply(ctx, coreac.ConfigMap(name, "default").WithData(map[string]string{"v": value}), metav1.ApplyOptions{FieldManager: "test", Force: true})
			return err
		},
		remove: func(ctx context.Context, name string) error { return maps.Delete(ctx, name, metav1.DeleteOptions{}) },
		clear: func(ctx context.Context) error {
			return maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "made"})
		},
	}
}

// withDynamic writes by client-go's dynamic client.
func withDynamic(t *testing.T, cfg *rest.Config) writer {
	api, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	maps := api.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
	object := func(name, value string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(applied(name, value), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	return writer{
		create: func(ctx context.Context, name, value string) error {
			_, err := maps.Create(ctx, object(name, value), metav1.CreateOptions{})
			return err
		},
		update: func(ctx context.Context, name, value string) error {
			_, err := maps.Update(ctx, object(name, value), metav1.UpdateOptions{})
			return err
		},
		patch: func(ctx context.Context, name, value string) error {
			_, err := maps.Patch(ctx, name, types.MergePatchType, mergePatch(value), metav1.PatchOptions{})
			return err
		},
		apply: func(ctx context.Context, name, value string) error {
			_, err := maps.Apply(ctx, name, object(name, value), metav1.ApplyOptions{FieldManager: "test", Force: true})
			return err
		},
		remove: func(ctx context.Context, name string) error { return maps.Delete(ctx, name, metav1.DeleteOptions{}) },
		clear: func(ctx context.Context) error {
			return maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "made"})
		},
	}
}

// withClient writes by a client of ours that reports to no Observer.
func withClient(t *testing.T, cfg *rest.Config) writer {
	c, err := client.New(cfg, clientscheme.Scheme, client.Options{FieldOwner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	object := func(name, value string) *corev1.ConfigMap {
		obj := configMap("default", name)
		obj.Data = map[string]string{"v": value}
		return obj
	}
	return writer{
		create: func(ctx context.Context, name, value string) error { return c.Create(ctx, object(name, value)) },
		update: func(ctx context.Context, name, value string) error {
			obj := &corev1.ConfigMap{}
			if err := c.Get(ctx, kube.Key{Namespace: "default", Name: name}, obj); err != nil {
				return err
			}
			obj.Data = object(name, value).Data
			return c.Update(ctx, obj)
		},
		patch: func(ctx context.Context, name, value string) error {
			return c.Patch(ctx, object(name, value), client.MergePatch(mergePatch(value)))
		},
		apply: func(ctx context.Context, name, value string) error {
			return c.Apply(ctx, object(name, value), client.Force{})
		},
		remove: func(ctx context.Context, name string) error { return c.Delete(ctx, object(name, "")) },
		clear: func(ctx context.Context) error {
			return client.DeleteAllOf[*corev1.ConfigMap](ctx, c, client.InNamespace("default"), client.MatchingLabels{"made": ""})
		},
	}
}

// running returns a manager that has synced ConfigMaps of each representation, on a server
// whose watches show nothing more.
func running(t *testing.T, objects ...runtime.Object) (*simtest.Server, *manager.Manager) {
	t.Helper()
	server := simtest.New(t, nil, objects...)
	mgr, err := manager.New(manager.Options{Config: server.Config, MetricsAddress: "0", HealthAddress: "0"})
	if err != nil {
		t.Fatal(err)
	}
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	informer.For[*corev1.ConfigMap](mgr.Informers())
	informer.ForKind(mgr.Informers(), kind)
	informer.ForMetadata(mgr.Informers(), kind)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- mgr.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if _, err := mgr.Informers().WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.LagTo(server.Revision())
	return server, mgr
}

// inListers returns what each Lister of ConfigMaps reads under a name.
func inListers(t *testing.T, mgr *manager.Manager, name string) string {
	t.Helper()
	key := kube.Key{Namespace: "default", Name: name}
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	say := func(value string, err error) string {
		switch {
		case apierrors.IsNotFound(err):
			return "gone"
		case err != nil:
			return err.Error()
		}
		return value
	}
	var all []string
	if obj, err := informer.For[*corev1.ConfigMap](mgr.Informers()).Lister().Get(key); err != nil {
		all = append(all, say("", err))
	} else {
		all = append(all, obj.Data["v"])
	}
	loose := informer.ForKind(mgr.Informers(), kind).Lister()
	if _, err := loose.Get(key); errors.As(err, new(*kube.NotSettledError)) {
		time.Sleep(time.Second) // a protobuf answer does not show all fields: they are read
	}
	if obj, err := loose.Get(key); err != nil {
		all = append(all, say("", err))
	} else {
		value, _, _ := unstructured.NestedString(obj.Object, "data", "v")
		all = append(all, value)
	}
	meta, err := informer.ForMetadata(mgr.Informers(), kind).Lister().Get(key)
	version := ""
	if err == nil {
		version = meta.ResourceVersion
	}
	all = append(all, say(version, err))
	return strings.Join(all, " ")
}

// The writes of any client are with the Listers when the call returns, though no watch
// shows them. No Lister reads the state before a write; an unstructured one asks the server
// about an answer in protobuf.
func TestConfig_WritesOfAnyClientAreReadAtOnce_R14(t *testing.T) {
	for name, make := range map[string]func(*testing.T, *rest.Config) writer{
		"clientset, JSON":     func(t *testing.T, cfg *rest.Config) writer { return withClientset(t, cfg, runtime.ContentTypeJSON) },
		"clientset, protobuf": func(t *testing.T, cfg *rest.Config) writer { return withClientset(t, cfg, runtime.ContentTypeProtobuf) },
		"dynamic":             withDynamic,
		"client":              withClient,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := configMap("default", "made")
				made.Labels = map[string]string{"made": ""}
				server, mgr := running(t, configMap("default", "a"), made)
				w := make(t, mgr.Config())
				ctx := t.Context()
				must := func(what string, err error) {
					t.Helper()
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
				}
				see := func(what, name, value string) {
					t.Helper()
					want := value + " " + value + " " + fmt.Sprint(server.Revision())
					if value == "gone" {
						want = "gone gone gone"
					}
					if got := inListers(t, mgr, name); got != want {
						t.Errorf("after %s the Listers read %s of %q, want %s: typed, unstructured, the version of the metadata", what, got, name, want)
					}
				}
				must("create", w.create(ctx, "b", "1"))
				see("create", "b", "1")
				must("update", w.update(ctx, "b", "2"))
				see("update", "b", "2")
				must("patch", w.patch(ctx, "b", "3"))
				see("patch", "b", "3")
				must("apply", w.apply(ctx, "b", "4"))
				see("apply", "b", "4")
				must("apply", w.apply(ctx, "c", "1"))
				see("apply of a new object", "c", "1")
				must("delete", w.remove(ctx, "b"))
				see("delete", "b", "gone")
				must("create", w.create(ctx, "b", "5"))
				see("create again", "b", "5")
				if err := w.create(ctx, "b", "6"); !apierrors.IsAlreadyExists(err) {
					t.Errorf("create of what exists: %v", err)
				}
				if err := w.remove(ctx, "none"); !apierrors.IsNotFound(err) {
					t.Errorf("delete of what does not exist: %v", err)
				}
				see("two refusals", "b", "5")
				must("delete", w.remove(ctx, "a"))
				see("delete", "a", "gone")
				must("delete of a collection", w.clear(ctx))
				see("delete of a collection", "made", "gone")
			})
		})
	}
}

// The last finalizer, a status and a metadata patch.
func TestConfig_WritesOfPartsAreReadAtOnce_R14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := configMap("default", "held")
		held.Finalizers = []string{"example.com/a"}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		server := simtest.New(t, nil, held, d)
		mgr, err := manager.New(manager.Options{Config: server.Config, MetricsAddress: "0", HealthAddress: "0"})
		if err != nil {
			t.Fatal(err)
		}
		deployments := informer.For[*appsv1.Deployment](mgr.Informers())
		maps := informer.ForMetadata(mgr.Informers(), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- mgr.Run(ctx) }()
		defer func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		if _, err := mgr.Informers().WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		server.LagTo(server.Revision())
		api, err := kubernetes.NewForConfig(mgr.Config())
		if err != nil {
			t.Fatal(err)
		}
		metas, err := metadata.NewForConfig(mgr.StandbyConfig())
		if err != nil {
			t.Fatal(err)
		}
		key := kube.KeyOf(d)
		now, err := deployments.Lister().Get(key)
		if err != nil {
			t.Fatal(err)
		}
		changed := now.DeepCopy()
		changed.Status.ObservedGeneration = 3
		if _, err := api.AppsV1().Deployments("default").UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if now, err = deployments.Lister().Get(key); err != nil || now.Status.ObservedGeneration != 3 {
			t.Errorf("after a status update: %v, %v", now, err)
		}
		of := metas.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
		if _, err := of.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if m, err := maps.Lister().Get(kube.KeyOf(held)); err != nil || m.Labels["a"] != "b" {
			t.Errorf("after a patch of metadata: %v, %v", m, err)
		}
		if err := of.Delete(ctx, "held", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if m, err := maps.Lister().Get(kube.KeyOf(held)); err != nil || m.DeletionTimestamp == nil {
			t.Errorf("after a delete that waits for a finalizer: %v, %v", m, err)
		}
		if _, err := of.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if m, err := maps.Lister().Get(kube.KeyOf(held)); !apierrors.IsNotFound(err) {
			t.Errorf("after the last finalizer: %v, %v, want nothing", m, err)
		}
	})
}
