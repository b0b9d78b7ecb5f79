// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	_ "embed"
	"encoding/json"
	"maps"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// rbacTable is the roles and bindings that a real server makes when it starts:
// those that users and controllers are given. Roles of a cluster's own parts
// are not among them.
//
//go:embed rbac_defaults.json
var rbacTable []byte

// defaultRole is one line of the table: a ClusterRole or a ClusterRoleBinding.
type defaultRole struct {
	Kind            string                  `json:"kind"`
	Name            string                  `json:"name"`
	Labels          map[string]string       `json:"labels"`
	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
	Rules           []rbacv1.PolicyRule     `json:"rules"`
	RoleRef         rbacv1.RoleRef          `json:"roleRef"`
	Subjects        []rbacv1.Subject        `json:"subjects"`
}

// DefaultRoles are the objects of the table. Nobody changes them.
var DefaultRoles = sync.OnceValue(func() (out []*object.Object) {
	var table []defaultRole
	utilruntime.Must(json.Unmarshal(rbacTable, &table)) // a table of ours
	for _, line := range table {
		role := &rbacv1.ClusterRole{AggregationRule: line.AggregationRule, Rules: line.Rules}
		role.Name, role.Labels = line.Name, map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}
		maps.Copy(role.Labels, line.Labels)
		role.Annotations = map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}
		made := runtime.Object(role)
		if line.Kind != "ClusterRole" {
			made = &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: line.RoleRef, Subjects: line.Subjects}
		}
		obj, err := kinds.ObjectOfTyped(&kinds.Kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind(line.Kind)}, made)
		utilruntime.Must(err)
		out = append(out, obj)
	}
	return out
})
