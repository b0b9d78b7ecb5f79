// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simulate/simtest"
)

// thrifty is a client that omits writes, of a Deployment that a cache has in each form.
type thrifty struct {
	*omitter
	t      *testing.T
	server *simtest.Server
	cache  *kinds
}

// omits returns a client of a cache with d in it. It must be called in a bubble.
func omits(t *testing.T, opts cache.Options, d *appsv1.Deployment) *thrifty {
	t.Helper()
	server, c, plain := started(t, opts, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	status := d.Status
	if err := plain.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if !reflect.ValueOf(status).IsZero() {
		d.Status = status
		if err := plain.Status().Update(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	cl, err := ClientOptions{OmitNoOps: true}.NewClient(server.Config, client.Options{
		Cache: &client.CacheOptions{Reader: c, Unstructured: true}, FieldOwner: "website",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range forms() {
		if _, err := c.GetInformer(t.Context(), form); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait() // the watches are live
	return &thrifty{cl.(*omitter), t, server, c}
}

// running is a Deployment with a status.
func running() *appsv1.Deployment {
	d := deployment("web")
	d.Annotations = map[string]string{"note": "a"}
	d.Spec.Replicas = new(int32(2))
	d.Status.Replicas, d.Status.ReadyReplicas = 2, 2
	return d
}

// sent returns how many writes reach the server during f, after which the cache has caught up.
func (c *thrifty) sent(f func() error) (n int, err error) {
	before := len(c.server.Served())
	err = f()
	for _, r := range c.server.Served()[before:] {
		if slices.Contains([]string{"update", "patch", "create"}, r.Verb) {
			n++
		}
	}
	synctest.Wait()
	return n, err
}

// read returns the Deployment from the cache in a form.
func (c *thrifty) read(form client.Object) client.Object {
	c.t.Helper()
	if err := c.Get(c.t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, form); err != nil {
		c.t.Fatal(err)
	}
	return form
}

func (c *thrifty) typed() *appsv1.Deployment {
	return c.read(&appsv1.Deployment{}).(*appsv1.Deployment)
}

func raw(how types.PatchType, text string) client.Patch { return client.RawPatch(how, []byte(text)) }

// Each write is decided by what it would change in the cached object.
func TestOmit_WritesThatChangeNothingAreNotSent_C16(t *testing.T) {
	const merge, strategic, json = types.MergePatchType, types.StrategicMergePatchType, types.JSONPatchType
	loosely := func(c *thrifty) *unstructured.Unstructured { return c.read(forms()[1]).(*unstructured.Unstructured) }
	patch := func(p client.Patch, opts ...client.PatchOption) func(*thrifty, context.Context) error {
		return func(c *thrifty, ctx context.Context) error { return c.Patch(ctx, c.typed(), p, opts...) }
	}
	for _, row := range []struct {
		name  string
		write func(*thrifty, context.Context) error
		want  int
	}{
		{"update", func(c *thrifty, ctx context.Context) error { return c.Update(ctx, c.typed()) }, 0},
		{"unstructured update", func(c *thrifty, ctx context.Context) error { return c.Update(ctx, loosely(c)) }, 0},
		{"update of the status", func(c *thrifty, ctx context.Context) error { return c.Status().Update(ctx, c.typed()) }, 0},
		{"update with a change", func(c *thrifty, ctx context.Context) error {
			d := c.typed()
			d.Spec.Replicas = new(int32(3))
			return c.Update(ctx, d)
		}, 1},
		{"update of the status with a change", func(c *thrifty, ctx context.Context) error {
			d := c.typed()
			d.Status.ReadyReplicas = 1
			return c.Status().Update(ctx, d)
		}, 1},
		{"update without a version", func(c *thrifty, ctx context.Context) error {
			d := c.typed()
			d.ResourceVersion = ""
			return c.Update(ctx, d)
		}, 1},
		{"update that resets managedFields", func(c *thrifty, ctx context.Context) error {
			d := c.typed()
			d.ManagedFields = []metav1.ManagedFieldsEntry{{}}
			return c.Update(ctx, d)
		}, 1},
		{"dry run of an update", func(c *thrifty, ctx context.Context) error { return c.Update(ctx, c.typed(), client.DryRunAll) }, 1},
		{"raw options", func(c *thrifty, ctx context.Context) error {
			return c.Update(ctx, c.typed(), &client.UpdateOptions{Raw: &metav1.UpdateOptions{}})
		}, 1},

		{"merge patch", patch(raw(merge, `{"metadata":{"annotations":{"note":"a","gone":null}},"spec":{"replicas":2}}`)), 0},
		{"empty merge patch", patch(raw(merge, `{}`)), 0},
		{"patch of an object of another version", func(c *thrifty, ctx context.Context) error {
			d := c.typed()
			d.ResourceVersion = "1"
			return c.Patch(ctx, d, raw(merge, `{}`))
		}, 1},
		{"merge patch with a change", patch(raw(merge, `{"spec":{"replicas":3}}`)), 1},
		{"merge patch with the version", func(c *thrifty, ctx context.Context) error {
			d := c.typed()
			return c.Patch(ctx, d, client.MergeFromWithOptions(d.DeepCopy(), client.MergeFromWithOptimisticLock{}))
		}, 0},
		{"merge patch of managedFields", patch(raw(merge, `{"metadata":{"managedFields":null}}`)), 1},
		{"merge patch with a null that the type may hide", patch(raw(merge, `{"spec":{"unknown":null}}`)), 1},
		{"merge patch with a zero", patch(raw(merge, `{"metadata":{"generation":0},"spec":{"paused":false}}`)), 1},
		{"unstructured merge patch with a null", func(c *thrifty, ctx context.Context) error {
			return c.Patch(ctx, loosely(c), raw(merge, `{"spec":{"unknown":null}}`))
		}, 0},
		{"metadata patch", func(c *thrifty, ctx context.Context) error {
			return c.Patch(ctx, c.read(forms()[2]), raw(merge, `{"metadata":{"labels":{"app":"web"}}}`))
		}, 0},
		{"metadata patch of other fields", func(c *thrifty, ctx context.Context) error {
			return c.Patch(ctx, c.read(forms()[2]), raw(merge, `{"spec":{"replicas":2}}`))
		}, 1},
		{"strategic patch", patch(raw(strategic, `{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"main"}],"containers":[{"name":"main","image":"main"}]}}}}`)), 0},
		{"strategic patch with a change", patch(raw(strategic, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"other"}]}}}}`)), 1},
		{"strategic patch that replaces", patch(raw(strategic, `{"metadata":{"labels":{"app":"web"}},"spec":{"selector":{"$patch":"replace","matchLabels":{"app":"web"}}}}`)), 1},
		{"empty JSON patch", patch(raw(json, `[]`)), 0},
		{"JSON patch", patch(raw(json, `[{"op":"test","path":"/spec/replicas","value":2}]`)), 1},
		{"dry run of a patch", patch(raw(merge, `{}`), client.DryRunAll), 1},
		{"patch of the status", func(c *thrifty, ctx context.Context) error {
			return c.Status().Patch(ctx, c.typed(), raw(merge, `{"status":{"readyReplicas":2}}`))
		}, 0},
		{"patch of the status with a change", func(c *thrifty, ctx context.Context) error {
			return c.Status().Patch(ctx, c.typed(), raw(merge, `{"status":{"readyReplicas":1}}`))
		}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := omits(t, cache.Options{}, running())
			n, err := c.sent(func() error { return row.write(c, t.Context()) })
			if n != row.want || err != nil {
				t.Errorf("%s: %d writes are sent, with %v, want %d", row.name, n, err, row.want)
			}
		})
	}
}

// The server stores nothing for a write that the client would have omitted.
func TestOmit_OmittedWriteWouldHaveChangedNothing_C16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := omits(t, cache.Options{}, running())
		for _, write := range []func(cl client.Client, d *appsv1.Deployment) error{
			func(cl client.Client, d *appsv1.Deployment) error { return cl.Update(t.Context(), d) },
			func(cl client.Client, d *appsv1.Deployment) error { return cl.Status().Update(t.Context(), d) },
			func(cl client.Client, d *appsv1.Deployment) error {
				d.ObjectMeta = metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}
				return cl.Patch(t.Context(), d, raw(types.MergePatchType, `{"metadata":{"labels":{"app":"web","no":null}}}`))
			},
		} {
			omitted, stored := c.typed(), c.typed()
			if n, err := c.sent(func() error { return write(c, omitted) }); n != 0 || err != nil {
				t.Errorf("%d writes are sent, with %v, want none", n, err)
			}
			if n, err := c.sent(func() error { return write(c.omitter.Client, stored) }); n != 1 || err != nil {
				t.Errorf("the client beneath sends %d writes, with %v, want one", n, err)
			}
			if !reflect.DeepEqual(omitted, stored) {
				t.Errorf("the object is %v, want what the server answers: %v", omitted, stored)
			}
		}
		if got := testutil.ToFloat64(c.omitted.WithLabelValues("Deployment.apps", "patch")); got < 1 {
			t.Errorf("%v omitted patches are counted, want at least one", got)
		}
	})
}

// Whatever a program writes: what is omitted, the server would not have stored.
func TestOmit_RandomWriteThatIsOmittedIsStoredByNoServer_C16(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			c, random := omits(t, cache.Options{}, running()), rand.New(rand.NewPCG(seed, 1))
			pick := func(of ...string) string { return of[random.IntN(len(of))] }
			omitted, changed := 0, 0
			for range 150 {
				form := forms()[random.IntN(3)]
				text := pick(`{}`, `{"spec":{"replicas":`+pick("1", "2", "null", "0")+`}}`, `{"spec":{"paused":`+pick("true", "false", "null")+`}}`,
					`{"metadata":{"labels":{"`+pick("app", "x")+`":`+pick(`"web"`, `"y"`, `""`, "null")+`}}}`,
					`{"metadata":{"annotations":`+pick(`null`, `{}`, `{"note":"a"}`, `{"note":"b"}`, `{"note":null}`)+`}}`,
					`{"metadata":{"managedFields":`+pick("null", "[{}]", "[]")+`}}`,
					`{"metadata":{"finalizers":`+pick("null", "[]", `["example.org/a"]`)+`}}`,
					`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"`+pick("main", "other")+`"}]}}}}`,
					`{"spec":{"template":{"spec":{"nodeSelector":`+pick("null", "{}", `{"a":"b"}`)+`}}}}`,
					`{"spec":{"minReadySeconds":`+pick("0", "1", "null")+`,"template":{"spec":{"hostNetwork":`+pick("false", "null")+`}}}}`,
					`{"status":{"readyReplicas":`+pick("0", "1", "2", "null")+`}}`)
				how := types.MergePatchType
				if _, loose := form.(*unstructured.Unstructured); !loose && random.IntN(2) == 0 {
					how = types.StrategicMergePatchType
				}
				write := func(cl client.Client, obj client.Object) error { return cl.Patch(t.Context(), obj, raw(how, text)) }
				switch random.IntN(4) {
				case 0:
					write = func(cl client.Client, obj client.Object) error {
						return cl.Status().Patch(t.Context(), obj, raw(how, text))
					}
				case 1:
					if formOf(form) != metadataForm {
						write = func(cl client.Client, obj client.Object) error { return cl.Update(t.Context(), obj) }
					}
				}
				time.Sleep(time.Second) // the cache has asked about what an answer in protobuf does not show
				read := c.read(form)
				again := read.DeepCopyObject().(client.Object)
				n, err := c.sent(func() error { return write(c, read) })
				if n > 0 || err != nil {
					changed++
					continue
				}
				omitted++
				if err := write(c.omitter.Client, again); err != nil || again.GetResourceVersion() != read.GetResourceVersion() {
					t.Fatalf("seed %d: %s of %s in a %T is omitted at version %s, and leads to version %s, with %v",
						seed, how, text, form, read.GetResourceVersion(), again.GetResourceVersion(), err)
				}
				if !equality.Semantic.DeepEqual(again, read) {
					t.Fatalf("seed %d: %s of %s is answered with %v, want what the server answers: %v", seed, how, text, read, again)
				}
			}
			if omitted < 20 || changed < 20 {
				t.Errorf("%d writes are omitted and %d sent; the test looks at little", omitted, changed)
			}
		})
	}
}

// What the cache does not show, or not any more, is sent.
func TestOmit_WhatIsNotKnownIsSent_C16(t *testing.T) {
	update := func(c *thrifty) (int, error) {
		d := c.typed()
		return c.sent(func() error { return c.Update(c.t.Context(), d) })
	}
	synctest.Test(t, func(t *testing.T) { // a conflict
		c := omits(t, cache.Options{}, running())
		old := c.typed()
		if _, err := c.sent(func() error {
			return c.Patch(t.Context(), c.typed(), raw(types.MergePatchType, `{"spec":{"replicas":3}}`))
		}); err != nil {
			t.Fatal(err)
		}
		old.Spec.Replicas = new(int32(3))
		if _, err := c.sent(func() error { return c.Update(t.Context(), old) }); !apierrors.IsConflict(err) {
			t.Errorf("an update of an old version gives %v, want the conflict", err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a lost answer
		c := omits(t, cache.Options{}, running())
		d := c.typed()
		c.server.LoseResponse(1)
		c.server.LagKindTo(deployments, c.server.Revision())
		changed := d.DeepCopy()
		changed.Spec.Replicas = new(int32(3))
		if err := c.Update(t.Context(), changed); err == nil {
			t.Fatal("the answer is not lost")
		}
		n, err := c.sent(func() error { return c.Patch(t.Context(), d, raw(types.MergePatchType, `{"spec":{"replicas":2}}`)) })
		if n != 1 || err != nil {
			t.Errorf("%d patches are sent after a write of unknown outcome, with %v, want one", n, err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a transform
		c := omits(t, cache.Options{DefaultTransform: func(in any) (any, error) {
			if d, ok := in.(*appsv1.Deployment); ok {
				d.Annotations = nil
			}
			return in, nil
		}}, running())
		if n, err := update(c); n != 1 || err != nil {
			t.Errorf("%d updates of a transformed object are sent, with %v, want one", n, err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // an object that is being deleted
		d := running()
		d.Finalizers = []string{"example.org/hold"}
		c := omits(t, cache.Options{}, d)
		if _, err := c.sent(func() error { return c.Delete(t.Context(), c.typed()) }); err != nil {
			t.Fatal(err)
		}
		if n, err := update(c); n != 1 || err != nil {
			t.Errorf("%d updates of an object that is being deleted are sent, with %v, want one", n, err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a status of zeros
		c := omits(t, cache.Options{}, deployment("web"))
		d := c.typed()
		if n, err := c.sent(func() error { return c.Status().Update(t.Context(), d) }); n != 1 || err != nil {
			t.Errorf("%d updates of a first status of zeros are sent, with %v, want one", n, err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // a kind without an informer, which none is started for
		c := omits(t, cache.Options{}, running())
		m := configMap("default", "a", nil)
		if err := c.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		n, err := c.sent(func() error { return c.Update(t.Context(), m) })
		if slots := len(c.cache.slots()); n != 1 || err != nil || slots != 3 {
			t.Errorf("%d updates are sent, with %v, and there are %d informers, want one update and three informers", n, err, slots)
		}
	})
}

// An apply is omitted if the same manager has applied the same, and nothing else has happened to
// the object since.
func TestOmit_AppliesOfAKnownOutcomeAreNotSent_C16(t *testing.T) {
	wish := func(replicas int32) *appsac.DeploymentApplyConfiguration {
		return appsac.Deployment("web", "default").WithLabels(map[string]string{"applied": "yes"}).
			WithSpec(appsac.DeploymentSpec().WithReplicas(replicas))
	}
	synctest.Test(t, func(t *testing.T) {
		c := omits(t, cache.Options{}, running())
		apply := func(replicas int32, opts ...client.ApplyOption) func() error {
			return func() error {
				w := wish(replicas)
				if err := c.Apply(t.Context(), w, append(opts, client.ForceOwnership)...); err != nil {
					return err
				}
				if d := c.typed(); w.UID == nil || *w.UID != d.UID || *w.ResourceVersion != d.ResourceVersion || *w.Spec.Replicas != replicas {
					t.Errorf("the configuration is %v, want it as the server answers", w)
				}
				return nil
			}
		}
		patch := func(text string) func() error {
			return func() error {
				return c.omitter.Client.Patch(t.Context(), c.typed(), raw(types.MergePatchType, text))
			}
		}
		byPatch := func() error { // the older form of an apply
			d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
			d.ObjectMeta, d.Spec = metav1.ObjectMeta{Namespace: "default", Name: "web"}, running().Spec
			//lint:ignore SA1019 programs still use it
			return c.Patch(t.Context(), d, client.Apply, client.ForceOwnership)
		}
		loose := func() error {
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "default", "name": "web"},
				"spec": map[string]any{"replicas": int64(4)},
			}}
			return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership)
		}
		for _, step := range []struct {
			name string
			f    func() error
			want int
		}{
			{"the first apply", apply(2), 1},
			{"the same", apply(2), 0},
			{"a dry run", func() error { return c.Apply(t.Context(), wish(2), client.ForceOwnership, client.DryRunAll) }, 1},
			{"the same after a dry run", apply(2), 0},
			{"another owner", apply(2, client.FieldOwner("other")), 1},
			{"the same after another owner's", apply(2), 1},
			{"the same again", apply(2), 0},
			{"another wish", apply(3), 1},
			{"the other wish again", apply(3), 0},
			{"a foreign change", patch(`{"spec":{"replicas":5}}`), 1},
			{"the same after a foreign change", apply(3), 1},
			{"with a version", func() error {
				return c.Apply(t.Context(), wish(3).WithResourceVersion(c.typed().ResourceVersion), client.ForceOwnership)
			}, 1},
			{"an apply as a patch", byPatch, 1},
			{"the same as a patch", byPatch, 0},
			{"unstructured", loose, 1},
			{"unstructured again", loose, 0},
		} {
			if n, err := c.sent(step.f); n != step.want || err != nil {
				t.Errorf("%s: %d applies are sent, with %v, want %d", step.name, n, err, step.want)
			}
		}
		status := func() error {
			return c.Status().Apply(t.Context(), appsac.Deployment("web", "default").WithStatus(appsac.DeploymentStatus().WithReplicas(2).WithReadyReplicas(1)), client.ForceOwnership)
		}
		for i, want := range []int{1, 0, 0} {
			if n, err := c.sent(status); n != want || err != nil {
				t.Errorf("apply %d of the status: %d are sent, with %v, want %d", i+1, n, err, want)
			}
		}
	})
}

// An apply is not known by an object that the cache does not have as it was answered.
func TestOmit_ApplyToATransformedObjectIsSent_C16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := omits(t, cache.Options{DefaultTransform: func(in any) (any, error) {
			in.(metav1.Object).SetAnnotations(nil)
			return in, nil
		}}, running())
		for range 2 {
			n, err := c.sent(func() error {
				return c.Apply(t.Context(), appsac.Deployment("web", "default").WithLabels(map[string]string{"a": "b"}), client.ForceOwnership)
			})
			if n != 1 || err != nil {
				t.Errorf("%d applies are sent, with %v, want each", n, err)
			}
		}
	})
}

// A cache of CacheOf has transforms that the bridge does not know: only applies are omitted.
func TestOmit_ViewOfOtherInformersOmitsOnlyApplies_C16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := omits(t, cache.Options{}, running())
		view, err := CacheOf(made.cache.factory)(made.server.Config, cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		run(t, view)
		cl, err := ClientOptions{OmitNoOps: true}.NewClient(made.server.Config, client.Options{Cache: &client.CacheOptions{Reader: view}, FieldOwner: "website"})
		if err != nil {
			t.Fatal(err)
		}
		c := &thrifty{cl.(*omitter), t, made.server, view.(*kinds)}
		d := c.typed()
		if n, err := c.sent(func() error { return c.Update(t.Context(), d) }); n != 1 || err != nil {
			t.Errorf("%d updates are sent, with %v, want one", n, err)
		}
		for _, want := range []int{1, 0} {
			n, err := c.sent(func() error {
				return c.Apply(t.Context(), appsac.Deployment("web", "default").WithLabels(map[string]string{"a": "b"}), client.ForceOwnership)
			})
			if n != want || err != nil {
				t.Errorf("%d applies are sent, with %v, want %d", n, err, want)
			}
		}
	})
}

// Without the option, and with a client of dry runs, everything is sent.
func TestOmit_IsOptIn(t *testing.T) {
	server, c, plain := started(t, cache.Options{}, running())
	dry, err := ClientOptions{OmitNoOps: true}.NewClient(server.Config, client.Options{Cache: &client.CacheOptions{Reader: c}, DryRun: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	for _, cl := range []client.Client{plain, dry} {
		if _, is := cl.(*omitter); is {
			t.Errorf("the client is a %T, want controller-runtime's", cl)
		}
	}
}

// Each client's writes reach subresources other than the status unchanged.
func TestOmit_OtherSubresourcesPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := omits(t, cache.Options{}, running())
		if _, is := c.SubResource("scale").(*statusOmitter); is {
			t.Error("writes of the scale are omitted like those of the status")
		}
		_, err := c.sent(func() error {
			return c.Apply(t.Context(), coreac.ConfigMap("a", "default").WithData(map[string]string{"a": "b"}), client.ForceOwnership)
		})
		m := &corev1.ConfigMap{}
		if got := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, m); err != nil || got != nil || m.Data["a"] != "b" {
			t.Errorf("an apply of a kind without an informer: %v, %v, %v", err, got, m.Data)
		}
	})
}

// A patch is sure or not by its fields alone.
func TestUnsure_WhatATypeMayHide_C16(t *testing.T) {
	for text, want := range map[string]string{
		`{"spec":{"a":1,"b":[{"c":"d"}]}}`:                  "",
		`{"metadata":{"labels":{"a":null,"b":""}}}`:         "",
		`{"metadata":{"labels":null}}`:                      "typed",
		`{"spec":{"a":null}}`:                               "typed",
		`{"spec":{"a":{}}}`:                                 "typed",
		`{"spec":{"a":[{"b":0}]}}`:                          "typed",
		`{"spec":{"a":[]}}`:                                 "typed",
		`{"metadata":{"managedFields":[{}]}}`:               "typed unstructured",
		`{"spec":{"$retainKeys":["a"],"a":1}}`:              "typed unstructured",
		`{"spec":{"a":[{"$patch":"delete","name":"b"}]}}`:   "typed unstructured",
		`{"spec":{"$setElementOrder/a":[{"name":"b"}]}}`:    "",
		`{"spec":{"$deleteFromPrimitiveList/a":["b"]}}`:     "typed unstructured",
		`{"metadata":{"annotations":{"managedFields":""}}}`: "",
	} {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"A","of":` + text + `}`)); err != nil {
			t.Fatal(err)
		}
		fields := runtime.DeepCopyJSON(u.Object["of"].(map[string]any))
		var got []string
		if unsure("", fields, false) {
			got = append(got, "typed")
		}
		if unsure("", fields, true) {
			got = append(got, "unstructured")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is unsure for %q, want %q", text, got, want)
		}
	}
}
