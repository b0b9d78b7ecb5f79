// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"testing"

	sandbox "sigs.k8s.io/agent-sandbox/api/v1alpha1"
	"sigs.k8s.io/agent-sandbox/controllers"
	claims "sigs.k8s.io/agent-sandbox/extensions/api/v1alpha1"
	claimcontrollers "sigs.k8s.io/agent-sandbox/extensions/controllers"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flyball-dev/flyball/simulate/doctor"
)

// setUpSandboxes adds agent-sandbox's controllers, as its main function does with its extensions.
func setUpSandboxes(_ context.Context, mgr ctrl.Manager) error {
	//lint:ignore SA1019 the operator takes it
	c, s, r := mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorderFor("sandbox")
	const workers = 1 // its default
	return errors.Join(
		(&controllers.SandboxReconciler{Client: c, Scheme: s, Tracer: untraced{}}).SetupWithManager(mgr, workers),
		(&claimcontrollers.SandboxClaimReconciler{Client: c, Scheme: s, Recorder: r, Tracer: untraced{}}).SetupWithManager(mgr, workers),
		(&claimcontrollers.SandboxTemplateReconciler{Client: c, Scheme: s, Recorder: r, Tracer: untraced{}}).SetupWithManager(mgr, workers),
		(&claimcontrollers.SandboxWarmPoolReconciler{Client: c}).SetupWithManager(mgr, workers),
	)
}

// sandboxCRDs returns agent-sandbox's definitions. What it has made of a Pod's template it never changes, so doctor need
// not try.
func sandboxCRDs(t *testing.T) (all []string) {
	t.Helper()
	for name, rules := range map[string]map[string]string{
		"agents.x-k8s.io_sandboxes":                   {"spec.podTemplate.spec": opaque},
		"extensions.agents.x-k8s.io_sandboxtemplates": {"spec.podTemplate.spec": opaque},
		"extensions.agents.x-k8s.io_sandboxclaims":    nil,
		"extensions.agents.x-k8s.io_sandboxwarmpools": nil,
	} {
		all = append(all, ruled(t, moduleFile(t, "sigs.k8s.io/agent-sandbox", "k8s", "crds", name+".yaml"), rules))
	}
	return all
}

func TestExamine_AgentSandbox(t *testing.T) {
	for sample, known := range map[string][]finding{
		"sandbox.yaml": {
			{doctor.PathDependent, "", "right: a Sandbox keeps the Pod and the claims that it has", false},
			{doctor.NotUndone, "PersistentVolumeClaim default/data2-box is there", "the same: a claim under another name stays", false},
		},
		"sandbox-claims.yaml": {
			{doctor.OtherEnd, "endpoints[1]", "bug, known as 418: a slow Sandbox lets its claim take several Pods of the pool", false},
			{doctor.OtherEnd, "default/one-* is missing", "bug, known as 444: a claim that is there before its template stays without a Sandbox", false},
			{doctor.NotUndone, "observedGeneration is behind", "bug, small: a claim reports the generation of its Sandbox as its own", false},
			{doctor.PathDependent, "", "right: claims and pools keep what they have made of a template", false},
			{doctor.OtherEnd, "dnsConfig", "the same", true},
		},
	} {
		t.Run(sample, func(t *testing.T) {
			examined{
				main: managed(schemeOf(sandbox.AddToScheme, claims.AddToScheme), setUpSandboxes), crds: sandboxCRDs(t),
				samples: []string{"testdata/examined/" + sample}, known: known, most: 100,
			}.examine(t)
		})
	}
}
