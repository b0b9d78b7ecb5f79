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
		name    string
		held    *row[*corev1.ConfigMap]
		list    map[Key]auditedState
		since   touchedKeys
		want    string
		rewound bool
	}{
		{"the same", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, map[Key]auditedState{a: {"u", 5}}, nil, "[]", false},
		{"a creation is lost", nil, map[Key]auditedState{a: {"u", 5}}, nil, "[/a]", false},
		{"an update is lost", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, map[Key]auditedState{a: {"u", 6}}, nil, "[/a]", false},
		{"a deletion is lost", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, nil, nil, "[/a]", false},
		{"a deletion and a creation are lost", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, map[Key]auditedState{a: {"v", 7}}, nil, "[/a]", false},
		{"changed since", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 12, scopes: mine}, map[Key]auditedState{a: {"u", 6}}, nil, "[]", false},
		{"created since", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 12, scopes: mine}, nil, nil, "[]", false},
		{"heard of since", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, map[Key]auditedState{a: {"u", 6}}, touchedKeys{a: {}}, "[]", false},
		{"deleted since", nil, map[Key]auditedState{a: {"u", 5}}, touchedKeys{a: {}}, "[]", false},
		{"another scope's", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: others}, nil, nil, "[]", false},
		{"in this scope too", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: others}, map[Key]auditedState{a: {"u", 5}}, nil, "[/a]", false},
		{"older at the server", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 7, scopes: mine}, map[Key]auditedState{a: {"u", 5}}, nil, "[/a]", true},
		{"older at the server, as new as the list", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 10, scopes: mine}, map[Key]auditedState{a: {"u", 5}}, nil, "[/a]", true},
		{"older at the server, heard of since", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 7, scopes: mine}, map[Key]auditedState{a: {"u", 5}}, touchedKeys{a: {}}, "[]", false},
		{"another object in the same version", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine}, map[Key]auditedState{a: {"v", 5}}, nil, "[/a]", true},
		{"cannot be compared", &row[*corev1.ConfigMap]{key: a, uid: "u", scopes: mine}, map[Key]auditedState{a: {"u", 5}}, nil, "[]", false},
		{"cannot be decoded", &row[*corev1.ConfigMap]{key: a, uid: "u", version: 5, scopes: mine, bad: true}, map[Key]auditedState{a: {"u", 5}}, nil, "[]", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rows []*row[*corev1.ConfigMap]
			if test.held != nil {
				rows = append(rows, test.held)
			}
			d := lostIn(slices.Values(rows), 0, test.list, 10, test.since)
			if got := fmt.Sprint(d.keys); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := len(d.rewound) > 0; got != test.rewound {
				t.Errorf("the server's versions went back: got %t, want %t", got, test.rewound)
			}
		})
	}
}
