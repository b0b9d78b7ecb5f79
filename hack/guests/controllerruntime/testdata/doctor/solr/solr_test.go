// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/doctor"
	"github.com/flyball-dev/flyball/simulate/kit"

	solr "github.com/apache/solr-operator/api/v1beta1"
	"github.com/apache/solr-operator/controllers"
)

const definition = "../../config/crd/bases/solr.apache.org_solrclouds.yaml"

var scheme = schemeOf(solr.AddToScheme)

// operator is the program: its controller of SolrClouds.
var operator = managed(scheme, func(_ context.Context, mgr ctrl.Manager) error {
	return (&controllers.SolrCloudReconciler{Client: mgr.GetClient(), Scheme: scheme}).SetupWithManager(mgr)
})

const sample = `
apiVersion: solr.apache.org/v1beta1
kind: SolrCloud
metadata: {name: search, namespace: default}
spec:
  replicas: 1
  zookeeperRef: {connectionInfo: {internalConnectionString: "zookeeper:2181"}}
  solrSecurity: {authenticationType: Basic}
`

func TestDoctor(t *testing.T) {
	doctor.Test(t, doctor.Operator{
		Main: operator, CRDs: []string{ruled(t, definition, map[string]string{whole: opaque})}, Samples: []string{file(t, sample)},
		Cluster: kit.Config{Actors: simulate.Actors{GarbageCollector: true, Namespaces: true}}, // the operator would ask Pods, which are not there
	})
}

// The operator creates a Secret with passwords, and then another one with the security.json that makes Solr ask for
// them. If the process ends in between, the next one takes the second for removed by the user.
func TestBug_SolrRunsWithoutAuthenticationAfterACrash(t *testing.T) {
	for name, crash := range map[string]bool{"without a crash": false, "with a crash": true} {
		t.Run(name, func(t *testing.T) {
			w, cloud, set := realWorld(t, scheme, definition), &solr.SolrCloud{}, &appsv1.StatefulSet{}
			must(t, yaml.Unmarshal([]byte(sample), cloud))
			must(t, w.Create(t.Context(), cloud))
			if crash {
				p := w.start(operator, func(p *process, r *http.Request) error {
					if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") {
						return p.kill()
					}
					return nil
				})
				<-p.ended
			}
			w.start(operator, nil)
			w.await("Solr is there", func() bool { return w.get("search-solrcloud", set) })
			secured := slices.ContainsFunc(set.Spec.Template.Spec.InitContainers, func(c corev1.Container) bool {
				return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "SECURITY_JSON" })
			})
			if secured == crash { // the bug; it is always secured if it is right
				t.Errorf("Solr asks for a password: %t", secured)
			}
		})
	}
}
