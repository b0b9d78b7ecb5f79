// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// shown returns whether an object of key is there and is as expected.
func shown[T kube.Object](l informer.Lister[T], key kube.Key, is func(obj T) bool) (bool, error) {
	obj, err := l.Get(key)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && is(obj), err
}

// absent returns whether no object of key is there.
func absent[T kube.Object](l informer.Lister[T], key kube.Key) (bool, error) {
	_, err := l.Get(key)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

func isChanged(t *trial) (bool, error) {
	return shown(t.maps.Lister(), t.key(), func(cm *corev1.ConfigMap) bool { return cm.Data["v"] == "2" })
}

func isLabelled(t *trial) (bool, error) {
	return shown(t.maps.Lister(), t.key(), func(cm *corev1.ConfigMap) bool { return cm.Labels["v"] == "2" && cm.Data["v"] == "1" })
}

func isGone(t *trial) (bool, error) { return absent(t.maps.Lister(), t.key()) }

func isDyingPod(t *trial) (bool, error) {
	return shown(t.pods.Lister(), t.key(), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// ofTrial selects the objects of a trial whose row has several.
func ofTrial(t *trial) informer.QueryOptions {
	return informer.QueryOptions{Namespace: t.ns, Selector: labels.SelectorFromSet(labels.Set{"trial": t.name})}
}

// allDying returns whether both objects of the trial are there and are being deleted.
func allDying[T kube.Object](l informer.Lister[T], t *trial) (bool, error) {
	all, err := l.List(ofTrial(t))
	return len(all) == 2 && !slices.ContainsFunc(all, func(o T) bool { return o.GetDeletionTimestamp() == nil }), err
}

func noneLeft(t *trial) (bool, error) {
	all, err := t.maps.Lister().List(ofTrial(t))
	return len(all) == 0, err
}

// finalize is a finalizer that somebody else has to remove.
const finalize = "integration.flyball.dev/hold"

// What exists before a write.

func aConfigMap(t *trial) []kube.Object { return []kube.Object{t.configMap("1")} }

func aHeldConfigMap(t *trial) []kube.Object {
	cm := t.configMap("1")
	cm.Finalizers = []string{finalize}
	return []kube.Object{cm}
}

func aPod(t *trial) []kube.Object {
	return []kube.Object{&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.ns, Name: t.name, Labels: map[string]string{"trial": t.name}},
		Spec:       corev1.PodSpec{NodeName: "none", Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}}
}

func aDeployment(t *trial) []kube.Object {
	one, app := int32(1), map[string]string{"app": t.name}
	return []kube.Object{&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.ns, Name: t.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
			},
		},
	}}
}

func aWidget(t *trial) []kube.Object {
	return []kube.Object{newWidget(t.ns, t.name, "1")}
}

// two returns a pair of what one makes, with the label of the trial.
func two(one func(t *trial) []kube.Object) func(t *trial) []kube.Object {
	return func(t *trial) (all []kube.Object) {
		for _, name := range []string{"-a", "-b"} {
			obj := one(t)[0]
			obj.SetName(t.name + name)
			obj.SetLabels(map[string]string{"trial": t.name})
			all = append(all, obj)
		}
		return all
	}
}

// change updates the trial's ConfigMap.
func change(ctx context.Context, t *trial) error {
	cm, err := t.cached()
	if err != nil {
		return err
	}
	cm.Data["v"] = "2"
	return t.Client().Update(ctx, cm)
}

// release removes the finalizers of the trial's ConfigMap.
func release(ctx context.Context, t *trial) error {
	cm, err := t.cached()
	if err != nil {
		return err
	}
	return t.Client().SetFinalizers(ctx, cm, nil)
}

func remove(ctx context.Context, t *trial) error { return t.Client().Delete(ctx, t.configMap("")) }

func deleteMaps(ctx context.Context, t *trial) error {
	return client.DeleteAllOf[*corev1.ConfigMap](ctx, t.Client(), client.InNamespace(t.ns), client.MatchingLabels{"trial": t.name})
}

func patch(ctx context.Context, t *trial) error {
	return t.Client().Patch(ctx, t.configMap(""), client.MergePatch([]byte(`{"data":{"v":"2"}}`)))
}

func apply(ctx context.Context, t *trial) error {
	cm := t.configMap("2")
	return t.Client().Apply(ctx, cm, client.FieldOwner("test"), client.Force{})
}

func createNew(ctx context.Context, t *trial) error { return t.Client().Create(ctx, t.configMap("2")) }

var rows = []*row{
	{name: "update", promises: []string{"R4"}, exists: aConfigMap, write: change, shows: isChanged},
	{name: "patch", promises: []string{"R4"}, exists: aConfigMap, write: patch, shows: isChanged},
	{name: "apply", promises: []string{"R4"}, exists: aConfigMap, write: apply, shows: isChanged},
	{
		name: "unstructured", promises: []string{"R4"}, exists: aWidget,
		write: func(ctx context.Context, t *trial) error {
			w, err := t.widgets.Lister().Get(t.key())
			if err != nil {
				return err
			}
			w = kube.Copy(w)
			if err := unstructured.SetNestedField(w.Object, "2", "spec", "value"); err != nil {
				return err
			}
			return t.Client().Update(ctx, w)
		},
		shows: func(t *trial) (bool, error) { return shown(t.widgets.Lister(), t.key(), valueIs("2")) },
	},
	{
		name: "status", promises: []string{"R4"}, exists: aDeployment,
		write: func(ctx context.Context, t *trial) error {
			d := aDeployment(t)[0]
			return t.Client().Status().Patch(ctx, d, client.MergePatch([]byte(`{"status":{"observedGeneration":7}}`)))
		},
		shows: func(t *trial) (bool, error) {
			return shown(t.deployments.Lister(), t.key(), func(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration == 7 })
		},
	},
	{name: "delete", promises: []string{"R4"}, exists: aConfigMap, write: remove, shows: isGone},
	{
		name: "delete and recreate", promises: []string{"R4"}, exists: aConfigMap,
		write: func(ctx context.Context, t *trial) error {
			if err := remove(ctx, t); err != nil {
				return err
			}
			return createNew(ctx, t)
		},
		shows: isChanged,
	},
	{name: "last finalizer", promises: []string{"R4"}, exists: aHeldConfigMap, dying: true, write: release, shows: isGone},
	{
		name: "create with generateName", promises: []string{"R4"},
		write: func(ctx context.Context, t *trial) error {
			cm := t.configMap("2")
			cm.Name, cm.GenerateName = "", t.name+"-"
			err := t.Client().Create(ctx, cm)
			t.name = cm.Name
			return err
		},
		shows: isChanged,
	},
	{
		name: "delete a Pod", promises: []string{"R4"}, exists: aPod,
		write: func(ctx context.Context, t *trial) error { return t.Client().Delete(ctx, aPod(t)[0]) },
		shows: isDyingPod,
	},
	{
		name: "delete a Pod at once", promises: []string{"R4"}, exists: aPod,
		write: func(ctx context.Context, t *trial) error {
			return t.Client().Delete(ctx, aPod(t)[0], client.GracePeriod(0))
		},
		shows: func(t *trial) (bool, error) { return absent(t.pods.Lister(), t.key()) },
	},
	{name: "delete a collection", promises: []string{"R4"}, exists: two(aConfigMap), write: deleteMaps, shows: noneLeft},
	{
		name: "delete and last finalizer in one go", promises: []string{"R4", "I11"}, exists: aHeldConfigMap,
		write: func(ctx context.Context, t *trial) error {
			for _, do := range []func(context.Context, *trial) error{change, remove, release} {
				if err := do(ctx, t); err != nil {
					return err
				}
			}
			return nil
		},
		shows: isGone,
	},
	{
		name: "patch of a dying object, then its last finalizer", promises: []string{"R4", "I11"}, exists: aHeldConfigMap, dying: true,
		write: func(ctx context.Context, t *trial) error {
			if err := patch(ctx, t); err != nil {
				return err
			}
			return release(ctx, t)
		},
		shows: isGone,
	},
	{
		name: "patch as PartialObjectMetadata", promises: []string{"I12"}, exists: aConfigMap,
		write: func(ctx context.Context, t *trial) error {
			meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: t.ns, Name: t.name}}
			meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			return t.Client().Patch(ctx, meta, client.MergePatch([]byte(`{"metadata":{"labels":{"v":"2"}}}`)))
		},
		shows: isLabelled,
	},
	{
		name: "scale", promises: []string{"I12"}, exists: aDeployment,
		write: func(ctx context.Context, t *trial) error { return t.Client().SetScale(ctx, aDeployment(t)[0], 5) },
		shows: func(t *trial) (bool, error) {
			return shown(t.deployments.Lister(), t.key(), func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 5 })
		},
	},
	{
		name: "eviction", promises: []string{"I12"}, exists: aPod,
		write: func(ctx context.Context, t *trial) error { return t.Client().Evict(ctx, aPod(t)[0]) },
		shows: isDyingPod,
	},
	{
		name: "delete a collection with finalizers", promises: []string{"I12"}, exists: two(aHeldConfigMap), write: deleteMaps,
		shows: func(t *trial) (bool, error) { return allDying(t.maps.Lister(), t) },
	},
	{
		name: "delete a collection of Pods with a grace period", promises: []string{"I12"}, exists: two(aPod),
		write: func(ctx context.Context, t *trial) error {
			return client.DeleteAllOf[*corev1.Pod](ctx, t.Client(), client.InNamespace(t.ns), client.MatchingLabels{"trial": t.name})
		},
		shows: func(t *trial) (bool, error) { return allDying(t.pods.Lister(), t) },
	},
	{name: "update, answer lost", promises: []string{"I12", "C14"}, exists: aConfigMap, lost: true, write: change, shows: isChanged},
	{name: "patch, answer lost", promises: []string{"I12", "C14"}, exists: aConfigMap, lost: true, write: patch, shows: isChanged},
	{name: "apply, answer lost", promises: []string{"I12", "C14"}, exists: aConfigMap, lost: true, write: apply, shows: isChanged},
	{name: "create, answer lost", promises: []string{"I12", "C14"}, lost: true, write: createNew, shows: isChanged},
	{name: "delete, answer lost", promises: []string{"I12", "C14"}, exists: aConfigMap, lost: true, write: remove, shows: isGone},
	{name: "last finalizer, answer lost", promises: []string{"I12", "C14"}, exists: aHeldConfigMap, dying: true, lost: true, write: release, shows: isGone},
	{name: "delete a collection, answer lost", promises: []string{"I12", "C14"}, exists: two(aConfigMap), lost: true, write: deleteMaps, shows: noneLeft},
	{
		name: "update by a clientset", promises: []string{"R14"}, exists: aConfigMap,
		write: func(ctx context.Context, t *trial) error { return changeBy(ctx, t, t.clientset) }, shows: isChanged,
	},
	{
		name: "update by a clientset with protobuf", promises: []string{"R14"}, exists: aConfigMap,
		write: func(ctx context.Context, t *trial) error { return changeBy(ctx, t, t.protobuf) }, shows: isChanged,
	},
	{
		name: "update by a clientset, answer lost", promises: []string{"R14"}, exists: aConfigMap, lost: true,
		write: func(ctx context.Context, t *trial) error { return changeBy(ctx, t, t.clientset) }, shows: isChanged,
	},
	{
		name: "create by a clientset", promises: []string{"R14"},
		write: func(ctx context.Context, t *trial) error {
			_, err := t.clientset.CoreV1().ConfigMaps(t.ns).Create(ctx, t.configMap("2"), metav1.CreateOptions{})
			return err
		},
		shows: isChanged,
	},
	{
		name: "delete by a clientset", promises: []string{"R14"}, exists: aConfigMap,
		write: func(ctx context.Context, t *trial) error {
			return t.clientset.CoreV1().ConfigMaps(t.ns).Delete(ctx, t.name, metav1.DeleteOptions{})
		},
		shows: isGone,
	},
	{
		name: "patch by a dynamic client", promises: []string{"R14"}, exists: aWidget,
		write: func(ctx context.Context, t *trial) error {
			_, err := t.dynamic.Resource(group.WithResource("widgets")).Namespace(t.ns).
				Patch(ctx, t.name, types.MergePatchType, []byte(`{"spec":{"value":"2"}}`), metav1.PatchOptions{})
			return err
		},
		shows: func(t *trial) (bool, error) { return shown(t.widgets.Lister(), t.key(), valueIs("2")) },
	},
	{
		name: "patch by a metadata client", promises: []string{"R14"}, exists: aConfigMap,
		write: func(ctx context.Context, t *trial) error {
			_, err := t.metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(t.ns).
				Patch(ctx, t.name, types.MergePatchType, []byte(`{"metadata":{"labels":{"v":"2"}}}`), metav1.PatchOptions{})
			return err
		},
		shows: isLabelled,
	},
}

func valueIs(want string) func(*unstructured.Unstructured) bool {
	return func(w *unstructured.Unstructured) bool {
		got, _, _ := unstructured.NestedString(w.Object, "spec", "value")
		return got == want
	}
}

func changeBy(ctx context.Context, t *trial, c kubernetes.Interface) error {
	cm, err := t.cached()
	if err != nil {
		return err
	}
	cm.Data["v"] = "2"
	_, err = c.CoreV1().ConfigMaps(t.ns).Update(ctx, cm, metav1.UpdateOptions{})
	return err
}
