// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate"
)

var peakPicture = flag.String("peak", "", "`file` to which TestPeak writes its picture")

const (
	root         = "../../.."
	peakExample  = "examples/controllerruntime"
	peakInterval = 250 * time.Millisecond
	peakFor      = 12 * time.Second
)

// TestPeak runs the example for controller-runtime without and with the line, on a cluster of
// 10,000 ConfigMaps and 15,000 Deployments that are not its own, and draws the resident memory of
// both from their start. Where it may make a memory cgroup, it runs both again with half of the
// peak without the line.
func TestPeak(t *testing.T) {
	if *peakPicture == "" {
		t.Skip("it is make peak")
	}
	kubeconfig := operatorServer(t, "ConfigMap=10000 Deployment=15000", func(server *simulate.Server) {
		var crd unstructured.Unstructured
		text, err := os.ReadFile(filepath.Join(root, peakExample, "config/crd.yaml"))
		if err == nil {
			err = yaml.Unmarshal(text, &crd.Object)
		}
		if err == nil {
			_, err = server.Put(&crd)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	without, with := peakBinary(t, false), peakBinary(t, true)
	series := []peakSeries{
		{name: "without the line", mb: residentOverTime(t, without, kubeconfig, "")},
		{name: "with the line", mb: residentOverTime(t, with, kubeconfig, "")},
	}
	limit := int64(slices.Max(series[0].mb)*1e6) / 2
	if group, err := newMemoryGroup(t, limit); err != nil {
		t.Logf("without a memory limit: %v", err)
	} else {
		for _, s := range series[:2] {
			binary := with
			if s.name == series[0].name {
				binary = without
			}
			name := fmt.Sprintf("%s, in %d MB", s.name, limit/1_000_000)
			series = append(series, peakSeries{name, residentOverTime(t, binary, kubeconfig, group)})
		}
	}
	var table strings.Builder
	fmt.Fprint(&table, "| seconds |")
	for _, s := range series {
		fmt.Fprintf(&table, " %s |", s.title())
		if n := len(s.mb); n > 0 {
			t.Logf("%s: peak %.0f MB, at the end %.0f MB", s.title(), slices.Max(s.mb), s.mb[n-1])
		}
	}
	for i := range int(peakFor / peakInterval) {
		fmt.Fprintf(&table, "\n| %.2f |", (time.Duration(i) * peakInterval).Seconds())
		for _, s := range series {
			cell := ""
			if i < len(s.mb) {
				cell = strconv.FormatFloat(s.mb[i], 'f', 1, 64)
			}
			fmt.Fprintf(&table, " %s |", cell)
		}
	}
	plot := exec.CommandContext(t.Context(), "go", "run", "./hack/plot", "-growth")
	plot.Dir, plot.Stdin, plot.Stderr = root, strings.NewReader(table.String()), os.Stderr
	picture, err := plot.Output()
	if err == nil {
		err = os.WriteFile(*peakPicture, picture, 0o644)
	}
	if err != nil {
		t.Fatalf("draw the picture: %v", err)
	}
}

// peakSeries is the resident memory of one process, each peakInterval until its end.
type peakSeries struct {
	name string
	mb   []float64
}

func (s peakSeries) title() string {
	if len(s.mb) < int(peakFor/peakInterval) {
		return s.name + ": killed"
	}
	return s.name
}

// peakBinary builds the example, without the line if wanted.
func peakBinary(t *testing.T, line bool) string {
	binary := filepath.Join(t.TempDir(), "pages")
	args := []string{"build", "-o", binary}
	if !line {
		args = append(args, "-overlay", withoutTheLine(t))
	}
	build := exec.CommandContext(t.Context(), "go", append(args, "./"+peakExample+"/cmd")...)
	build.Dir, build.Env = root, append(os.Environ(), "GOWORK=") // the example is of the workspace
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, out)
	}
	return binary
}

// withoutTheLine writes an overlay for the go command in which the example does not use the bridge.
func withoutTheLine(t *testing.T) string {
	dir := t.TempDir()
	main, err := filepath.Abs(filepath.Join(root, peakExample, "cmd/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	for _, bridged := range [][2]string{
		{"bridge.Options(opts)", "opts"},
		{"\tif err := bridge.AddHealthz(mgr); err != nil {\n\t\treturn err\n\t}\n", ""},
		{"\tbridge \"github.com/flyball-dev/flyball/bridge/controllerruntime\"\n", ""},
	} {
		if !bytes.Contains(text, []byte(bridged[0])) {
			t.Fatalf("%s does not have %q", main, bridged[0])
		}
		text = bytes.ReplaceAll(text, []byte(bridged[0]), []byte(bridged[1]))
	}
	changed, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{main: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{changed: text, overlay: replaced} {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// residentOverTime runs the operator for peakFor, in a memory cgroup unless that is empty, and
// returns its resident memory in MB.
func residentOverTime(t *testing.T, binary, kubeconfig, group string) (mb []float64) {
	run := exec.CommandContext(t.Context(), "sh", "-c", `test -z "$1" || echo $$ >"$1/cgroup.procs"; shift; exec "$@"`,
		"sh", group, binary, "-metrics-bind-address=0", "-health-probe-bind-address=0")
	var said bytes.Buffer
	run.Env, run.Stdout, run.Stderr = append(os.Environ(), "KUBECONFIG="+kubeconfig), &said, &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	tick := time.NewTicker(peakInterval)
	defer tick.Stop()
	for range int(peakFor / peakInterval) {
		select {
		case err := <-ended:
			if group == "" || run.ProcessState.ExitCode() != -1 {
				t.Fatalf("the operator ended: %v\n%s", err, said.String())
			}
			return mb // killed
		case <-tick.C:
		}
		if resident := residentOf(t, run.Process.Pid); resident > 0 {
			mb = append(mb, float64(resident)/1e6)
		}
	}
	if err := run.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-ended
	return mb
}
