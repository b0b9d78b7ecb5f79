// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAudit_FindsWhatTheWatchShouldHaveBrought_A6(t *testing.T) {
	a := Key{Name: "a"}
	mine, others := scopesOf(0), scopesOf(1)
	for _, test := range []struct {
		name  string
		held  *row[*corev1.ConfigMap]
		list  map[Key]auditedState
		since touchedKeys
		want  string
	}{
		{"the same", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, map[Key]auditedState{a: {"u", 5}}, nil, "[]"},
		{"a creation is lost", nil, map[Key]auditedState{a: {"u", 5}}, nil, "[/a]"},
		{"an update is lost", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, map[Key]auditedState{a: {"u", 6}}, nil, "[/a]"},
		{"a deletion is lost", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, nil, nil, "[/a]"},
		{"a deletion and a creation are lost", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, map[Key]auditedState{a: {"v", 7}}, nil, "[/a]"},
		{"changed since", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 12, scopes: mine}, map[Key]auditedState{a: {"u", 6}}, nil, "[]"},
		{"created since", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 12, scopes: mine}, nil, nil, "[]"},
		{"heard of since", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, map[Key]auditedState{a: {"u", 6}}, touchedKeys{a: {}}, "[]"},
		{"deleted since", nil, map[Key]auditedState{a: {"u", 5}}, touchedKeys{a: {}}, "[]"},
		{"another scope's", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: others}, nil, nil, "[]"},
		{"in this scope too", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: others}, map[Key]auditedState{a: {"u", 5}}, nil, "[/a]"},
		{"cannot be compared", &row[*corev1.ConfigMap]{key: a, uid: "u", scopes: mine}, map[Key]auditedState{a: {"u", 5}}, nil, "[]"},
		{"cannot be decoded", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine, bad: true}, map[Key]auditedState{a: {"u", 5}}, nil, "[]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rows []*row[*corev1.ConfigMap]
			if test.held != nil {
				rows = append(rows, test.held)
			}
			if got := fmt.Sprint(lostIn(slices.Values(rows), 0, test.list, 10, test.since)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
