// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

var (
	definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	gadget      = schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Gadget"}
)

// gadgets are files with a definition whose spec has these properties.
func gadgets(properties string) fstest.MapFS {
	return fstest.MapFS{"config/crd.yaml": &fstest.MapFile{Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {` + properties + `}}}}}
`)}}
}

const (
	one = `a: {type: integer, maximum: 9}`
	two = one + `, b: {type: string}`
)

// program is a manager with an informer of gadgets.
type program struct {
	gadgets *informer.SharedInformer[*unstructured.Unstructured]
	run     func(ctx context.Context) error
}

func installs(t *testing.T, server *simtest.Server, opts manager.Options) program {
	t.Helper()
	opts.Config, opts.MetricsAddress, opts.HealthAddress = server.Config, "0", "0"
	opts.Logger = logr.FromSlogHandler(slog.DiscardHandler)
	mgr, err := manager.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return program{informer.ForKind(mgr.Informers(), gadget), mgr.Run}
}

// start runs programs at the same time until all have synced, and stops them.
func start(t *testing.T, all ...program) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, p := range all {
		running.Go(func() {
			if err := p.run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for _, p := range all {
		select {
		case <-p.gadgets.Synced():
		case <-time.After(time.Minute):
			t.Error("the informer has not synced within a minute")
		}
	}
	stop()
	running.Wait()
}

// fails runs a program until it returns an error.
func fails(t *testing.T, p program) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err := p.run(ctx)
	if err == nil {
		t.Fatal("the program runs for a minute, want an error")
	}
	return err.Error()
}

// writes returns the answers to writes of definitions, in order, and those to reads of
// gadgets before the last of them.
func writes(server *simtest.Server) (answers []int, early int) {
	reads := 0
	for _, r := range server.Served() {
		switch {
		case strings.HasPrefix(r.Path, "/apis/example.dev/"):
			reads++
		case strings.Contains(r.Path, "/customresourcedefinitions") && r.Verb != "get":
			answers = append(answers, r.Status)
			early = reads
		}
	}
	return answers, early
}

func definition(t *testing.T, server *simtest.Server) (generation int64, version string) {
	t.Helper()
	all := server.Objects(definitions)
	if len(all) != 1 {
		t.Fatalf("the server has %d definitions, want 1", len(all))
	}
	return all[0].GetGeneration(), all[0].GetResourceVersion()
}

func TestInstallCRDs_InformersWaitForThem_O6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil)
		server.Reject(definitions, 3, 500)
		start(t, installs(t, server, manager.Options{InstallCRDs: gadgets(one)}))
		if answers, early := writes(server); len(answers) != 4 || answers[3] != 201 || early > 0 {
			t.Errorf("the definition was written with %v, and %d reads of its kind came before; want three refusals, 201, and none", answers, early)
		}
		begun := len(server.Served())
		start(t, installs(t, server, manager.Options{InstallCRDs: gadgets(one)}))
		for _, r := range server.Served()[begun:] {
			if strings.HasSuffix(r.Path, "/gadgets.example.dev") && r.Verb != "get" {
				t.Errorf("the definition is there, and a start sends %s %s", r.Verb, r.Path)
			}
		}
	})
}

func TestInstallCRDs_NothingIsNarrowed_O7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil)
		start(t, installs(t, server, manager.Options{InstallCRDs: gadgets(two)}))
		for properties, want := range map[string]string{
			`b: {type: string}`: ".spec.a: the property is removed: the server drops its values",
			`a: {type: integer, maximum: 8}, b: {type: string}`:  ".spec.a: maximum changes from 9 to 8",
			`a: {type: integer, maximum: 9}, b: {type: integer}`: ".spec.b: the type changes from string to integer",
		} {
			got := fails(t, installs(t, server, manager.Options{InstallCRDs: gadgets(properties)}))
			if !strings.Contains(got, "install CustomResourceDefinition gadgets.example.dev: an update would narrow it, so nothing was written:\n\tv1: "+want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	})
}

func TestInstallCRDs_ARefusedUpdateWritesNothing_O7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil)
		start(t, installs(t, server, manager.Options{InstallCRDs: gadgets(two)}))
		_, before := definition(t, server)
		fails(t, installs(t, server, manager.Options{InstallCRDs: gadgets(`b: {type: string}`)}))
		if _, after := definition(t, server); after != before {
			t.Errorf("the definition has version %s after the error, and had %s", after, before)
		}
		if answers, _ := writes(server); len(answers) != 1 {
			t.Errorf("the definition was written with %v, want the first creation alone", answers)
		}
	})
}

func TestInstallCRDs_ReplicasInstallOnce_O8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil)
		replicas := func(properties string) (out []program) {
			for range 4 {
				out = append(out, installs(t, server, manager.Options{InstallCRDs: gadgets(properties)}))
			}
			return out
		}
		start(t, replicas(one)...)
		if generation, _ := definition(t, server); generation != 1 {
			t.Errorf("the generation is %d, want 1", generation)
		}
		start(t, append(replicas(two), replicas(one)...)...)
		generation, version := definition(t, server)
		if generation != 2 {
			t.Errorf("the generation is %d, want 2: one update", generation)
		}
		start(t, replicas(one)...) // the old version restarts
		if _, after := definition(t, server); after != version {
			t.Errorf("the old version has written the definition: it has version %s, and had %s", after, version)
		}
	})
}

// An answer that is lost leaves the question whether the definition was written.
func TestInstallCRDs_LostAnswersAreReadAgain_O8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil)
		for generation, properties := range []string{one, two} {
			server.LoseResponse(8)
			p := installs(t, server, manager.Options{InstallCRDs: gadgets(properties)})
			start(t, p, installs(t, server, manager.Options{InstallCRDs: gadgets(properties)}))
			if got, _ := definition(t, server); got != int64(generation+1) {
				t.Errorf("the generation is %d, want %d", got, generation+1)
			}
		}
	})
}

func TestInstallCRDs_WithoutTheRightOrTheWish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil)
		server.Deny("create", definitions)
		if got := fails(t, installs(t, server, manager.Options{InstallCRDs: gadgets(one)})); !strings.Contains(got, "the verbs get, create and update of customresourcedefinitions.apiextensions.k8s.io, or the flag -install-crds=false") {
			t.Errorf("got %s, want the rights and the flag", got)
		}
		begun := len(server.Served())
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := installs(t, server, manager.Options{InstallCRDs: gadgets(one), KeepCRDs: true}).run(ctx); err != nil {
			t.Error(err)
		}
		for _, r := range server.Served()[begun:] {
			if strings.Contains(r.Path, "customresourcedefinitions") {
				t.Errorf("with KeepCRDs a start sends %s %s", r.Verb, r.Path)
			}
		}
	})
}

// A definition whose names another one has is never established, and the error says so.
func TestInstallCRDs_TakenNamesAreAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil)
		start(t, installs(t, server, manager.Options{InstallCRDs: gadgets(one)}))
		taken := gadgets(one)
		file := taken["config/crd.yaml"]
		file.Data = []byte(strings.NewReplacer("gadgets.example.dev", "others.example.dev", "plural: gadgets", "plural: others").Replace(string(file.Data)))
		if got := fails(t, installs(t, server, manager.Options{InstallCRDs: taken})); !strings.Contains(got, "wait for CustomResourceDefinition others.example.dev: its names are not accepted: ") {
			t.Errorf("got %s", got)
		}
	})
}

// One that is being deleted is installed anew when it is gone.
func TestInstallCRDs_WaitsForADeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil)
		start(t, installs(t, server, manager.Options{InstallCRDs: gadgets(one)}))
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: definitions.Group, Version: "v1", Kind: "CustomResourceDefinition"})
		crd.SetName("gadgets.example.dev")
		if err := server.Client.Get(t.Context(), kube.KeyOf(crd), crd); err != nil {
			t.Fatal(err)
		}
		uid := crd.GetUID()
		crd.SetFinalizers(append(crd.GetFinalizers(), "example.dev/held"))
		if err := server.Client.Update(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		if err := server.Client.Delete(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Second, func() {
			now := crd.DeepCopy()
			err := server.Client.Get(context.Background(), kube.KeyOf(now), now)
			if err := errors.Join(err, server.Client.SetFinalizers(context.Background(), now, nil)); err != nil {
				t.Error(err)
			}
		})
		start(t, installs(t, server, manager.Options{InstallCRDs: gadgets(one)}))
		if all := server.Objects(definitions); len(all) != 1 || all[0].GetUID() == uid || all[0].GetDeletionTimestamp() != nil {
			t.Errorf("the server has %v, want a new definition", all)
		}
	})
}
