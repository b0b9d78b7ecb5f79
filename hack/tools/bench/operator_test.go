// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"context"
	"encoding/json"
	"fmt"
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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
	"github.com/flyball-dev/flyball/hack/tools/bench/internal/cluster"
	"github.com/flyball-dev/flyball/simulate"
)

const (
	operatorSide   = "FLYBALL_BENCH_OPERATOR" // set: this process is the measured operator, such as "bridge strip"
	operatorCounts = "FLYBALL_BENCH_COUNTS"   // its Pods and Nodes
	operatorGroup  = "FLYBALL_BENCH_CGROUP"   // the memory cgroup that it enters
)

// operatorSides are an operator of controller-runtime without and with the line. strip: with
// TransformStripManagedFields; metadata: it reads metadata only; third, eighth: with strip, in a
// cgroup with a part of what controller-runtime takes at its peak without it.
var operatorSides = []string{
	"controller-runtime", "bridge", "controller-runtime strip", "bridge strip", "controller-runtime metadata", "bridge metadata",
	"controller-runtime third", "bridge third", "controller-runtime eighth", "bridge eighth",
}

// operatorParts are the parts of a peak, by the end of a side's name.
var operatorParts = map[string]int64{"third": 3, "eighth": 8}

// BenchmarkOperator measures an operator of controller-runtime in a process of its own, from its
// start until it has read and reconciled 20,000 Pods of 10.8 kB and 5,000 Nodes of 14.8 kB, with
// one worker per kind. The server is a simulated one in this process. FLYBALL_BENCH_OPERATOR_PODS
// and FLYBALL_BENCH_OPERATOR_NODES change the numbers.
func BenchmarkOperator(b *testing.B) {
	pods, nodes := sized(b, "OPERATOR_PODS", 20_000), sized(b, "OPERATOR_NODES", 5_000)
	kubeconfig := operatorServer(b, pods, nodes)
	peak := int64(1_004_000_000) // measured before
	for _, side := range operatorSides {
		b.Run(side, func(b *testing.B) {
			env := []string{operatorSide + "=" + side, childConfig + "=" + kubeconfig, operatorCounts + "=" + fmt.Sprint(pods, " ", nodes)}
			_, how, _ := strings.Cut(side, " ")
			part, limited := operatorParts[how]
			if limited {
				env = append(env, operatorGroup+"="+memoryGroup(b, peak/part))
			}
			if limited && operatorKilled(b, env) {
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
				b.ReportMetric(values[len(values)/2], unit)
				if side == "controller-runtime" && unit == "peak-RSS-MB" {
					peak = int64(values[len(values)/2] * 1e6)
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// operatorServer starts a simulated server with Pods and Nodes.
func operatorServer(b *testing.B, pods, nodes int) (kubeconfig string) {
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
	namespaces := map[string]bool{}
	for pod := range cluster.NewPods(cluster.PodOptions{Count: pods, Owners: max(pods/10, 1), ManagedFields: true}).All() {
		if ns := pod.Namespace; !namespaces[ns] {
			namespaces[ns] = true
			put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		}
		put(pod)
	}
	for i := range nodes {
		put(operatorNode(i))
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
func memoryGroup(b *testing.B, limit int64) string {
	dir := fmt.Sprintf("/sys/fs/cgroup/memory/flyball-bench-%d", os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Skipf("make a memory cgroup (of version 1): %v", err)
	}
	b.Cleanup(func() { os.Remove(dir) })
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		b.Fatal(err)
	}
	return dir
}

// operatorKilled reports whether the limit kills the operator.
func operatorKilled(b *testing.B, env []string) bool {
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^TestOperatorChild$")
	cmd.Env = append(os.Environ(), env...)
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode() == -1 // by a signal
}

// operatorStart is what one process needed.
type operatorStart struct {
	Wall, CPU          time.Duration
	Peak, Steady, Heap int64
}

var operatorUnits = map[string]func(operatorStart) float64{
	"wall-s":        func(r operatorStart) float64 { return r.Wall.Seconds() },
	"cpu-s":         func(r operatorStart) float64 { return r.CPU.Seconds() },
	"peak-RSS-MB":   func(r operatorStart) float64 { return float64(r.Peak) / 1e6 },
	"steady-RSS-MB": func(r operatorStart) float64 { return float64(r.Steady) / 1e6 },
	"heap-MB":       func(r operatorStart) float64 { return float64(r.Heap) / 1e6 },
}

// TestOperatorChild is the measured process; by itself it does nothing.
func TestOperatorChild(t *testing.T) {
	side := os.Getenv(operatorSide)
	if side == "" {
		t.Skip("it is a part of BenchmarkOperator")
	}
	if dir := os.Getenv(operatorGroup); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var pods, nodes int64
	if _, err := fmt.Sscan(os.Getenv(operatorCounts), &pods, &nodes); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv(childConfig))
	if err != nil {
		t.Fatal(err)
	}
	ctrl.SetLogger(logr.Discard())
	opts := ctrl.Options{Scheme: clientscheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"}
	if _, how, _ := strings.Cut(side, " "); how == "strip" || operatorParts[how] > 0 {
		opts.Cache.DefaultTransform = cache.TransformStripManagedFields()
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
	left.Store(pods + nodes)
	done := make(chan time.Time, 1)
	for kind, like := range map[string]client.Object{"Pod": &corev1.Pod{}, "Node": &corev1.Node{}} {
		read := func() client.Object { return like.DeepCopyObject().(client.Object) }
		var how []builder.ForOption
		if strings.HasSuffix(side, "metadata") {
			gvk := schema.GroupVersionKind{Version: "v1", Kind: kind}
			read = func() client.Object {
				m := &metav1.PartialObjectMetadata{}
				m.SetGroupVersionKind(gvk)
				return m
			}
			how = append(how, builder.OnlyMetadata)
		}
		err := ctrl.NewControllerManagedBy(mgr).Named(strings.ToLower(kind)).For(like, how...).Complete(ctrlreconcile.Func(
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
	run.Peak = peakRSS(t)
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	run.Steady, run.Heap = residentNow(t), int64(stats.HeapAlloc)
	out, _ := json.Marshal(run)
	fmt.Printf("RESULT %s\n", out)
	cancel()
	<-ended
}
