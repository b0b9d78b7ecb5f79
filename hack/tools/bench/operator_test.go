// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
	"github.com/flyball-dev/flyball/hack/tools/bench/internal/cluster"
	"github.com/flyball-dev/flyball/simulate"
)

const (
	operatorSide   = "FLYBALL_BENCH_OPERATOR" // set: this process is the measured operator, such as "bridge strip"
	operatorCounts = "FLYBALL_BENCH_COUNTS"   // how many objects it has of each kind, such as "Pod=20000 Node=5000"
	operatorGroup  = "FLYBALL_BENCH_CGROUP"   // the memory cgroup that it enters
)

// operatorSides are an operator of controller-runtime without and with the line. strip: with
// TransformStripManagedFields; metadata: it reads metadata only; third, eighth: with strip, in a
// cgroup with a part of what controller-runtime takes at its peak without it.
var operatorSides = []string{
	"controller-runtime", "bridge", "controller-runtime strip", "bridge strip", "controller-runtime metadata", "bridge metadata",
	"controller-runtime third", "bridge third", "controller-runtime eighth", "bridge eighth",
}

// customSides are those of a custom kind. packed: with a MemoryLimit of a quarter of what the
// objects take; unstructured: without a Go type.
var customSides = []string{
	"controller-runtime", "bridge", "bridge packed",
	"controller-runtime unstructured", "bridge unstructured", "bridge unstructured packed",
}

// operatorPacked is the MemoryLimit of the sides that are packed.
const operatorPacked = 72 << 20

// operatorKinds are the kinds of the objects, in the order in which they are made.
var operatorKinds = []struct {
	name string
	like client.Object
	make func(n, count int) client.Object // the n-th of count
}{
	{"Pod", &corev1.Pod{}, func(n, count int) client.Object {
		return cluster.NewPods(cluster.PodOptions{Count: count, Owners: max(count/10, 1), ManagedFields: true}).Pod(n)
	}},
	{"Deployment", &appsv1.Deployment{}, func(n, count int) client.Object {
		// Its Pods have the same template and the same managers, and no two Deployments the same owner.
		pod, meta := cluster.NewPods(cluster.PodOptions{Count: count, Owners: count, ManagedFields: true}).Pod(n), operatorMeta(n)
		meta.ManagedFields = pod.ManagedFields
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels, Annotations: pod.Annotations}, Spec: pod.Spec},
		}}
	}},
	{"Node", &corev1.Node{}, func(n, _ int) client.Object { return operatorNode(n) }},
	{"ConfigMap", &corev1.ConfigMap{}, func(n, _ int) client.Object {
		return &corev1.ConfigMap{ObjectMeta: operatorMeta(n), Data: map[string]string{"config.yaml": strings.Repeat(fmt.Sprintf("key-%d: value\n", n), 250)}}
	}},
	{"Secret", &corev1.Secret{}, func(n, _ int) client.Object {
		text := make([]byte, 3000)
		_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(text)
		return &corev1.Secret{ObjectMeta: operatorMeta(n), Data: map[string][]byte{"tls.crt": text, "tls.key": text[:1700]}}
	}},
	{"Service", &corev1.Service{}, func(n, _ int) client.Object {
		name := fmt.Sprint("app-", n)
		return &corev1.Service{ObjectMeta: operatorMeta(n), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "metrics", Port: 9090}}}}
	}},
	{"EndpointSlice", &discoveryv1.EndpointSlice{}, func(n, _ int) client.Object {
		s := &discoveryv1.EndpointSlice{ObjectMeta: operatorMeta(n), AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(80))}}}
		for i := range 5 {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", n/256%256, n%256, i)}, NodeName: new(fmt.Sprint("node-", (n+i)%200)), Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
		}
		return s
	}},
	{"Event", &corev1.Event{}, func(n, _ int) client.Object {
		at := metav1.Unix(1_790_000_000+int64(n), 0)
		return &corev1.Event{
			ObjectMeta: operatorMeta(n), Reason: "Unhealthy", Type: "Warning", Message: fmt.Sprintf("Readiness probe failed: Get \"http://10.0.%d.%d:8080/healthz\": context deadline exceeded", n/256%256, n%256),
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: fmt.Sprint("app-", n%6000), UID: types.UID(fmt.Sprintf("%036x", n))},
			Source:         corev1.EventSource{Component: "kubelet", Host: fmt.Sprint("node-", n%200)}, FirstTimestamp: at, LastTimestamp: at, Count: int32(n % 50),
		}
	}},
	{"Database", &cluster.Database{}, func(n, _ int) client.Object { return databases.Typed(n) }},
}

// databases are custom resources of 8 kB of random text. They are installed in the server.
var databases = cluster.NewDatabases(cluster.ResourceOptions{Count: 20_000})

func operatorMeta(n int) metav1.ObjectMeta {
	name := fmt.Sprint("app-", n)
	return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm"}}
}

// BenchmarkOperator measures an operator of controller-runtime in a process of its own, from its
// start until it has read and reconciled 20,000 Pods of 10.8 kB and 5,000 Nodes of 14.8 kB, with
// one worker per kind. The server is a simulated one in this process.
func BenchmarkOperator(b *testing.B) { benchmarkOperator(b, "Pod=20000 Node=5000", operatorSides) }

// BenchmarkOperator_Cluster is the same with the numbers of objects of a cluster that
// https://github.com/k8ssandra/k8ssandra-operator/issues/1752 describes, in 512 MiB.
func BenchmarkOperator_Cluster(b *testing.B) {
	benchmarkOperator(b, "Pod=6554 ConfigMap=2845 Service=2561 EndpointSlice=2533 Event=27000 Secret=5000",
		[]string{"controller-runtime", "bridge", "controller-runtime 512MiB", "bridge 512MiB"})
}

// BenchmarkOperator_Custom is the same with 20,000 custom resources of 8 kB of random text.
func BenchmarkOperator_Custom(b *testing.B) {
	benchmarkOperator(b, "Database=20000", customSides)
}

func benchmarkOperator(b *testing.B, counts string, sides []string) {
	kubeconfig := operatorServer(b, counts, nil)
	peak := int64(1_004_000_000) // measured before
	for _, side := range sides {
		b.Run(side, func(b *testing.B) {
			env := []string{operatorSide + "=" + side, childConfig + "=" + kubeconfig, operatorCounts + "=" + counts}
			_, how, _ := strings.Cut(side, " ")
			limit := map[string]int64{"third": peak / 3, "eighth": peak / 8, "512MiB": 512 << 20}[how]
			if limit > 0 {
				env = append(env, operatorGroup+"="+memoryGroup(b, limit))
			}
			if limit > 0 && operatorKilled(b, env) {
				for b.Loop() { // it was killed once, and always would be
				}
				b.ReportMetric(1, "killed")
				return
			}
			var runs []operatorStart
			for b.Loop() {
				var run operatorStart
				childResult(b, side, "^TestOperatorChild$", env, &run)
				runs = append(runs, run)
			}
			for unit, of := range operatorUnits {
				values := make([]float64, 0, len(runs))
				for _, r := range runs {
					values = append(values, of(r))
				}
				slices.Sort(values)
				if values[len(values)/2] == 0 {
					continue // not measured
				}
				b.ReportMetric(values[len(values)/2], unit)
				if side == "controller-runtime" && unit == "peak-RSS-MB" {
					peak = int64(values[len(values)/2] * 1e6)
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// operatorCount returns how many objects of a kind counts has.
func operatorCount(t testing.TB, counts, kind string) int {
	for _, field := range strings.Fields(counts) {
		if name, n, _ := strings.Cut(field, "="); name == kind {
			count, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
	}
	return 0
}

// operatorServer starts a simulated server with the objects, and with what prepare puts there.
func operatorServer(b testing.TB, counts string, prepare func(*simulate.Server)) (kubeconfig string) {
	server, err := simulate.Listen(simulate.ListenOptions{Logger: logr.Discard()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	b.Cleanup(func() { stop(); <-ended })
	put := func(obj k8sruntime.Object) {
		if _, err := server.Server().Put(obj); err != nil {
			b.Fatal(err)
		}
	}
	if prepare != nil {
		prepare(server.Server())
	}
	server.Server().Install(simulate.Kind{GroupVersionKind: cluster.FleetVersion.WithKind(databases.Kind()), Namespaced: true})
	namespaces := map[string]bool{"": true}
	for _, kind := range operatorKinds {
		count := operatorCount(b, counts, kind.name)
		for n := range count {
			obj := kind.make(n, count)
			if ns := obj.GetNamespace(); !namespaces[ns] {
				namespaces[ns] = true
				put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
			}
			put(obj)
		}
	}
	kubeconfig = filepath.Join(b.TempDir(), "kubeconfig")
	if err := server.WriteKubeconfig(kubeconfig); err != nil {
		b.Fatal(err)
	}
	return kubeconfig
}

// operatorNode returns a Node of 14.8 kB of JSON: 50 images, eight conditions, labels and
// annotations of a cloud, and managedFields.
func operatorNode(i int) *corev1.Node {
	at := metav1.Unix(1_790_000_000+int64(i), 0)
	n := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("node-%05d", i), CreationTimestamp: at, Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.NodeSpec{PodCIDR: fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), ProviderID: fmt.Sprintf("cloud:///zone-%d/i-%017x", i%3, i*7919)},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{},
			NodeInfo: corev1.NodeSystemInfo{MachineID: fmt.Sprintf("%032x", i*104729), SystemUUID: fmt.Sprintf("%032x", i*15485863), KernelVersion: "6.8.0-1021", OSImage: "Linux", ContainerRuntimeVersion: "containerd://2.1.4", KubeletVersion: "v1.37.2"},
		},
	}
	for j := range 12 {
		n.Labels[fmt.Sprintf("topology.example.com/label-%02d", j)] = fmt.Sprintf("value-%d", i%(j+2))
		n.Annotations[fmt.Sprintf("csi.example.com/annotation-%02d", j)] = fmt.Sprintf("{\"node\":\"node-%05d\",\"driver\":%d}", i, j)
	}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "pods", "ephemeral-storage"} {
		n.Status.Capacity[name] = *resource.NewQuantity(int64(64+i%4), resource.DecimalSI)
		n.Status.Allocatable[name] = *resource.NewQuantity(int64(60+i%4), resource.DecimalSI)
	}
	for j := range 8 {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeConditionType(fmt.Sprintf("Condition%d", j)), Status: corev1.ConditionFalse, LastHeartbeatTime: metav1.Unix(at.Unix()+int64(i*j), 0),
			LastTransitionTime: at, Reason: fmt.Sprintf("KubeletHasNoProblem%d", j), Message: "kubelet has sufficient resources of this kind available",
		})
	}
	for j := range 50 {
		digest := fmt.Sprintf("%064x", (i%40*50+j)*1_000_003)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{"registry.example.com/team/image-" + strconv.Itoa(j) + "@sha256:" + digest}, SizeBytes: int64(10_000_000 + i%40*j),
		})
	}
	fields := strings.Repeat(`"f:topology.example.com/label":{},"f:csi.example.com/annotation":{},`, 40)
	for _, manager := range []string{"kubelet", "kube-controller-manager"} {
		n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{` + strings.TrimSuffix(fields, ",") + `}}`)},
		})
	}
	return n
}

// memoryGroup makes a memory cgroup with a limit; it skips the benchmark where it may not.
func memoryGroup(b testing.TB, limit int64) string {
	dir, err := newMemoryGroup(b, limit)
	if err != nil {
		b.Skip(err)
	}
	return dir
}

func newMemoryGroup(b testing.TB, limit int64) (dir string, err error) {
	dir = fmt.Sprintf("/sys/fs/cgroup/memory/flyball-bench-%d", os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("make a memory cgroup (of version 1): %w", err)
	}
	b.Cleanup(func() { os.Remove(dir) })
	return dir, os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte(strconv.FormatInt(limit, 10)), 0o644)
}

// operatorKilled reports whether the limit kills the operator in one of three tries.
func operatorKilled(b *testing.B, env []string) bool {
	for range 3 { // near the limit it is a matter of chance
		cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestOperatorChild$")
		cmd.Env = append(os.Environ(), env...)
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() == -1 {
			return true
		}
	}
	return false
}

// operatorStart is what one process needed.
type operatorStart struct {
	Wall, CPU          time.Duration
	Peak, Steady, Heap int64
	Charged            int64 // the most that the memory cgroup had, with cached files; 0: there is none
	// Of reads by the manager's client: of one object, of any of them, and a list of the first kind.
	GetHot, GetAny, List time.Duration
}

var operatorUnits = map[string]func(operatorStart) float64{
	"wall-s":        func(r operatorStart) float64 { return r.Wall.Seconds() },
	"cpu-s":         func(r operatorStart) float64 { return r.CPU.Seconds() },
	"peak-RSS-MB":   func(r operatorStart) float64 { return float64(r.Peak) / 1e6 },
	"steady-RSS-MB": func(r operatorStart) float64 { return float64(r.Steady) / 1e6 },
	"heap-MB":       func(r operatorStart) float64 { return float64(r.Heap) / 1e6 },
	"charged-MB":    func(r operatorStart) float64 { return float64(r.Charged) / 1e6 },
	"peak/steady":   func(r operatorStart) float64 { return float64(r.Peak) / float64(r.Steady) },
	"Get-hot-us":    func(r operatorStart) float64 { return float64(r.GetHot.Nanoseconds()) / 1e3 },
	"Get-any-us":    func(r operatorStart) float64 { return float64(r.GetAny.Nanoseconds()) / 1e3 },
	"List-ms":       func(r operatorStart) float64 { return float64(r.List.Nanoseconds()) / 1e6 },
}

// TestOperatorChild is the measured process; by itself it does nothing.
func TestOperatorChild(t *testing.T) {
	side := os.Getenv(operatorSide)
	if side == "" {
		t.Skip("it is a part of BenchmarkOperator")
	}
	dir := os.Getenv(operatorGroup)
	if dir != "" {
		err := os.WriteFile(filepath.Join(dir, "memory.max_usage_in_bytes"), []byte("0"), 0o644)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv(childConfig))
	if err != nil {
		t.Fatal(err)
	}
	ctrl.SetLogger(logr.Discard())
	scheme := fleetScheme(t)
	opts := ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"}
	if _, how, _ := strings.Cut(side, " "); how == "strip" || how == "third" || how == "eighth" {
		opts.Cache.DefaultTransform = cache.TransformStripManagedFields()
	}
	opts.Client.Cache = &client.CacheOptions{Unstructured: true}
	if strings.HasSuffix(side, "packed") {
		opts.NewCache = bridge.CacheOptions{MemoryLimit: operatorPacked}.NewCache
	}
	if strings.HasPrefix(side, "bridge") {
		opts = bridge.Options(opts)
	}
	begin := time.Now()
	mgr, err := ctrl.NewManager(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int64
	var first client.Object
	done := make(chan time.Time, 1)
	for _, kind := range operatorKinds {
		count := operatorCount(t, os.Getenv(operatorCounts), kind.name)
		if count == 0 {
			continue
		}
		left.Add(int64(count))
		like := operatorLike(t, side, kind.like, scheme)
		read := func() client.Object { return like.DeepCopyObject().(client.Object) }
		first = cmp.Or(first, like)
		err := ctrl.NewControllerManagedBy(mgr).Named(strings.ToLower(kind.name)).For(like).Complete(ctrlreconcile.Func(
			func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
				if err := mgr.GetClient().Get(ctx, req.NamespacedName, read()); err != nil {
					return ctrl.Result{}, err
				}
				if left.Add(-1) == 0 {
					done <- time.Now()
				}
				return ctrl.Result{}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	var run operatorStart
	select {
	case at := <-done:
		run.Wall = at.Sub(begin)
	case err := <-ended:
		t.Fatalf("the operator ended with %d objects left: %v", left.Load(), err)
	}
	run.CPU, _ = usedSoFar(t)
	run.Peak, run.Charged = peakRSS(t), chargedTo(t, dir)
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	run.Steady, run.Heap = residentNow(t), int64(stats.HeapAlloc)
	if dir == "" { // where there is room for copies of all objects
		run.timeReads(ctx, t, mgr.GetClient(), first, scheme)
	}
	out, _ := json.Marshal(run)
	fmt.Printf("RESULT %s\n", out)
	cancel()
	<-ended
}

// chargedTo returns the most that a memory cgroup has had; 0: there is none.
func chargedTo(t *testing.T, dir string) (bytes int64) {
	if dir == "" {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(dir, "memory.max_usage_in_bytes"))
	if err == nil {
		bytes, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// operatorLike returns an object of the form in which a side reads a kind.
func operatorLike(t *testing.T, side string, like client.Object, scheme *k8sruntime.Scheme) client.Object {
	kind, err := apiutil.GVKForObject(like, scheme)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case strings.Contains(side, "metadata"):
		like = &metav1.PartialObjectMetadata{}
	case strings.Contains(side, "unstructured"):
		like = &unstructured.Unstructured{}
	default:
		return like
	}
	like.GetObjectKind().SetGroupVersionKind(kind)
	return like
}

// timeReads measures reads of objects like like.
func (r *operatorStart) timeReads(ctx context.Context, t *testing.T, cl client.Client, like client.Object, scheme *k8sruntime.Scheme) {
	kind, err := apiutil.GVKForObject(like, scheme)
	if err != nil {
		t.Fatal(err)
	}
	kind.Kind += "List"
	var list client.ObjectList
	switch like.(type) {
	case *metav1.PartialObjectMetadata:
		list = &metav1.PartialObjectMetadataList{}
	case *unstructured.Unstructured:
		list = &unstructured.UnstructuredList{}
	default:
		made, err := scheme.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		list = made.(client.ObjectList)
	}
	list.GetObjectKind().SetGroupVersionKind(kind)
	all := list.DeepCopyObject().(client.ObjectList)
	if err := cl.List(ctx, all); err != nil {
		t.Fatal(err)
	}
	var keys []client.ObjectKey
	err = meta.EachListItem(all, func(obj k8sruntime.Object) error {
		keys = append(keys, client.ObjectKeyFromObject(obj.(client.Object)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all = nil
	rand.Shuffle(len(keys), func(x, y int) { keys[x], keys[y] = keys[y], keys[x] })
	timed := func(read func(n int) error) time.Duration {
		runtime.GC()
		result := testing.Benchmark(func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				if err := read(n); err != nil {
					b.Fatal(err)
				}
			}
		})
		return time.Duration(result.NsPerOp())
	}
	get := func(key client.ObjectKey) error { return cl.Get(ctx, key, like.DeepCopyObject().(client.Object)) }
	r.GetHot = timed(func(int) error { return get(keys[0]) })
	r.GetAny = timed(func(n int) error { return get(keys[n%len(keys)]) })
	r.List = timed(func(int) error { return cl.List(ctx, list.DeepCopyObject().(client.ObjectList)) })
}
