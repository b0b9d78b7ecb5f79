// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bytes"
	"flag"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
)

func TestOptions_FormAndLevelOfTheLog(t *testing.T) {
	for _, c := range []struct {
		opts manager.Options
		want string
	}{
		{manager.Options{LogFormat: "json", LogLevel: "warn"}, ""},
		{manager.Options{LogFormat: "xml"}, `LogFormat is "xml"; give "text" or "json" (-log-format)`},
		{manager.Options{LogLevel: "loud"}, `LogLevel: level "loud": write error, warn, info, debug or trace (-log-level)`},
	} {
		c.opts.Config = &rest.Config{Host: "http://x"}
		if _, err := manager.New(c.opts); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q %q: %v, want %q", c.opts.LogFormat, c.opts.LogLevel, err, c.want)
		}
	}
}

// The kubelet connects from outside the Pod; elsewhere no client outside needs access.
func TestOptions_ProbesAreReachedInAPod(t *testing.T) {
	for _, tc := range []struct{ host, port, given, want string }{
		{"10.0.0.1", "443", "", ":8081"},
		{"10.0.0.1", "443", "127.0.0.1:9", "127.0.0.1:9"},
		{"10.0.0.1", "443", "0", "0"},
		{"10.0.0.1", "", "", "127.0.0.1:8081"},
		{"", "443", "", "127.0.0.1:8081"},
		{"", "", ":9", ":9"},
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", tc.host)
		t.Setenv("KUBERNETES_SERVICE_PORT", tc.port)
		o := manager.Options{HealthAddress: tc.given}
		must(t, o.Complete())
		if o.HealthAddress != tc.want {
			t.Errorf("host %q, port %q, address %q given: probes at %q, want %q", tc.host, tc.port, tc.given, o.HealthAddress, tc.want)
		}
	}
}

func TestOptions_ZeroIsFitForProduction(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // not in a Pod
	var o manager.Options
	must(t, o.Complete())
	if o.MetricsAddress != "127.0.0.1:8080" || o.HealthAddress != "127.0.0.1:8081" {
		t.Errorf("addresses %q, %q, want loopback: nobody outside reads what is not guarded", o.MetricsAddress, o.HealthAddress)
	}
	if o.GracePeriod != 30*time.Second || !o.Scheme.Recognizes(appsv1.SchemeGroupVersion.WithKind("Deployment")) || o.Logger.IsZero() || o.Informers.Logger.IsZero() || o.Client.Logger.IsZero() {
		t.Errorf("got %+v, want 30 s, the built-in kinds, a logger for all", o)
	}
}

func TestOptions_MisuseIsReturnedByNew(t *testing.T) {
	for _, tc := range []struct {
		opts  manager.Options
		wants string
	}{
		{manager.Options{MetricsAddress: "8080"}, `MetricsAddress "8080": address 8080: missing port in address; write "host:port"`},
		{manager.Options{HealthAddress: "localhost"}, `HealthAddress "localhost"`},
		{manager.Options{HealthAddress: ":9", MetricsAddress: ":9"}, `both ":9"; give each its own port`},
		{manager.Options{GracePeriod: -time.Second}, "GracePeriod is -1s"},
		{manager.Options{Record: manager.Record{Keep: 3}}, "Record: its Dir is empty"},
		{manager.Options{Record: manager.Record{Dir: "x", Every: time.Second}}, "Record: its Every is 1s"},
		{manager.Options{Record: manager.Record{Redact: []string{"data"}}}, `Record: the field to redact is "data"`},
		{manager.Options{Impersonate: rest.ImpersonationConfig{Groups: []string{"a"}}}, "no UserName to impersonate is set, which servers require with groups, extra and UID; give -as too"},
		{manager.Options{Impersonate: rest.ImpersonationConfig{UID: "a"}}, "give -as too"},
	} {
		tc.opts.Config = &rest.Config{Host: "http://127.0.0.1:1"}
		if _, err := manager.New(tc.opts); err == nil || !strings.Contains(err.Error(), tc.wants) {
			t.Errorf("New = %v, want an error with %q", err, tc.wants)
		}
	}
	for _, opts := range []manager.Options{{HealthAddress: ":0", MetricsAddress: ":0"}, {HealthAddress: "0", MetricsAddress: "0"}} {
		opts.Config, opts.Logger = &rest.Config{Host: "http://127.0.0.1:1"}, quiet()
		if _, err := manager.New(opts); err != nil {
			t.Errorf("New = %v, want nil: two free ports differ, and so do none", err)
		}
	}
}

func TestOptions_UnusableConfigIsReturnedByNew(t *testing.T) {
	cfg := &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAFile: "gone.pem"}}
	if _, err := manager.New(manager.Options{Config: cfg}); err == nil || !strings.Contains(err.Error(), "gone.pem") {
		t.Errorf("New = %v, want an error that names the missing certificate", err)
	}
}

func TestBindFlags_FlagBeforeVariableBeforeValue(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  map[string]string
		args string
		want func(o *manager.Options) bool
	}{
		{"values stay", nil, "", func(o *manager.Options) bool {
			return o.MetricsAddress == ":1" && o.HealthAddress == "" && o.Informers.Namespaces == nil
		}},
		{"variables", map[string]string{"METRICS_BIND_ADDRESS": ":2", "HEALTH_PROBE_BIND_ADDRESS": ":3", "WATCH_NAMESPACE": "a, b"}, "", func(o *manager.Options) bool {
			return o.MetricsAddress == ":2" && o.HealthAddress == ":3" && slices.Equal(o.Informers.Namespaces, []string{"a", "b"})
		}},
		{"flags", map[string]string{"METRICS_BIND_ADDRESS": ":2"}, "--metrics-bind-address=:4 --health-probe-bind-address :5 -kubeconfig k -context c -watch-namespaces x -graceful-shutdown-timeout 7s -stuck-after 9m -v 3", func(o *manager.Options) bool {
			return o.MetricsAddress == ":4" && o.HealthAddress == ":5" && o.Kubeconfig == "k" && o.Context == "c" &&
				slices.Equal(o.Informers.Namespaces, []string{"x"}) && o.GracePeriod == 7*time.Second && o.StuckAfter == 9*time.Minute && o.Verbosity == 3
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, name := range []string{"METRICS_BIND_ADDRESS", "HEALTH_PROBE_BIND_ADDRESS", "WATCH_NAMESPACE"} {
				t.Setenv(name, tc.env[name])
			}
			o := manager.Options{MetricsAddress: ":1"}
			fs := flag.NewFlagSet("x", flag.ContinueOnError)
			o.BindFlags(fs)
			must(t, fs.Parse(strings.Fields(tc.args)))
			if !tc.want(&o) {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestOptions_ALoggerForSilenceIsKept(t *testing.T) {
	silence := logr.FromSlogHandler(slog.DiscardHandler)
	o := manager.Options{Logger: silence}
	must(t, o.Complete())
	if o.Logger.Enabled() || o.Informers.Logger.Enabled() || o.Client.Logger.Enabled() {
		t.Errorf("the logger is %T, and shows lines: who asks for silence gets lines on stderr", o.Logger.GetSink())
	}
}

func TestBindFlags_MalformedValuesAreRefused(t *testing.T) {
	for _, args := range []string{"-v x", "-graceful-shutdown-timeout soon", "-stuck-after never"} {
		var o manager.Options
		fs := flag.NewFlagSet("x", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		o.BindFlags(fs)
		if err := fs.Parse(strings.Fields(args)); err == nil {
			t.Errorf("%s was accepted", args)
		}
	}
	var o manager.Options
	o.BindFlags(nil)
	if err := o.Complete(); err == nil {
		t.Error("a nil flag set was accepted")
	}
}

func TestBindFlags_SharesFlagsThatAreThere(t *testing.T) {
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	theirs := fs.String("kubeconfig", "", "of another library")
	fs.String("v", "0", "of a logging library")
	var o manager.Options
	o.BindFlags(fs)
	must(t, fs.Parse([]string{"-kubeconfig", "file", "-v", "4"}))
	must(t, o.Complete())
	if *theirs != "file" || o.Kubeconfig != "file" || o.Verbosity != 4 {
		t.Errorf("theirs %q, ours %q, verbosity %d: both libraries read the one flag", *theirs, o.Kubeconfig, o.Verbosity)
	}
	must(t, fs.Parse([]string{"-v", "much"}))
	if err := o.Complete(); err == nil || !strings.Contains(err.Error(), "flag -v") {
		t.Errorf("Complete = %v, want an error that names the flag", err)
	}
}

func TestBindFlags_UsageShowsDefaults(t *testing.T) {
	var o manager.Options
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	var text bytes.Buffer
	fs.SetOutput(&text)
	o.BindFlags(fs)
	fs.PrintDefaults()
	for _, want := range []string{"-kubeconfig file", "(default 127.0.0.1:8080)", "(or $METRICS_BIND_ADDRESS)", "(default 30s)"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("usage lacks %q:\n%s", want, text.String())
		}
	}
}

// A word without its dash would run the operator on the cluster of the kubeconfig.
func TestParseFlags_RefusesArguments(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-leader-elect -v=2", ""},
		{"leader-elect", "do you mean -leader-elect?"},
		{"-leader-elect false", "do you mean -leader-elect=false?"},
		{"-leaderelect", "there is no flag -leaderelect; do you mean -leader-elect?"},
	} {
		var o manager.Options
		fs := flag.NewFlagSet("operator", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		o.BindFlags(fs)
		err := manager.ParseFlags(fs, strings.Fields(c.args))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestOptions_InstallCRDsAreRead(t *testing.T) {
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.dev}\n"
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"a.yaml": "---\n" + crd, "deep/down/b.yml": "---\n---\n" + strings.Replace(crd, "a.", "b.", 1), "README.md": "no YAML"}, ""},
		{nil, "read InstallCRDs: no .yaml, .yml or .json file has a CustomResourceDefinition"},
		{map[string]string{"a.yaml": "{"}, "read InstallCRDs: a.yaml: "},
		{map[string]string{"a.yaml": crd, "b.yaml": crd}, `read InstallCRDs: b.yaml: "a.example.dev" is defined twice`},
		{map[string]string{"a.yaml": "{apiVersion: v1, kind: Pod, metadata: {name: p}}"}, `read InstallCRDs: a.yaml: it has the Pod "p"; only CustomResourceDefinitions are installed`},
		{map[string]string{"a.json": `{"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "metadata": {"name": "a"}}`}, `read InstallCRDs: a.json: "a" has the version apiextensions.k8s.io/v1beta1, want apiextensions.k8s.io/v1`},
		{map[string]string{"a.yaml": strings.Replace(crd, "{name: a.example.dev}", "{labels: {a: b}}", 1)}, "read InstallCRDs: a.yaml: a CustomResourceDefinition has no metadata.name"},
	} {
		files := fstest.MapFS{}
		for name, text := range c.files {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		o := manager.Options{InstallCRDs: files}
		err := o.Complete()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: got %v, want %q", c.files, err, c.want)
		}
	}
}
