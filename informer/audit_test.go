// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

func TestAudit_FindsWhatTheWatchShouldHaveBrought_A6(t *testing.T) {
	a := kube.Key{Name: "a"}
	mine, others := store.ScopesOf(0), store.ScopesOf(1)
	for _, test := range []struct {
		name    string
		held    *store.Row
		list    map[kube.Key]auditedState
		since   touchedKeys
		want    string
		rewound bool
	}{
		{"the same", &store.Row{Key: a, UID: "u", Version: 5, Scopes: mine}, map[kube.Key]auditedState{a: {"u", 5}}, nil, "[]", false},
		{"a creation is lost", nil, map[kube.Key]auditedState{a: {"u", 5}}, nil, "[/a]", false},
		{"an update is lost", &store.Row{Key: a, UID: "u", Version: 5, Scopes: mine}, map[kube.Key]auditedState{a: {"u", 6}}, nil, "[/a]", false},
		{"a deletion is lost", &store.Row{Key: a, UID: "u", Version: 5, Scopes: mine}, nil, nil, "[/a]", false},
		{"a deletion and a creation are lost", &store.Row{Key: a, UID: "u", Version: 5, Scopes: mine}, map[kube.Key]auditedState{a: {"v", 7}}, nil, "[/a]", false},
		{"changed since", &store.Row{Key: a, UID: "u", Version: 12, Scopes: mine}, map[kube.Key]auditedState{a: {"u", 6}}, nil, "[]", false},
		{"created since", &store.Row{Key: a, UID: "u", Version: 12, Scopes: mine}, nil, nil, "[]", false},
		{"heard of since", &store.Row{Key: a, UID: "u", Version: 5, Scopes: mine}, map[kube.Key]auditedState{a: {"u", 6}}, touchedKeys{a: {}}, "[]", false},
		{"deleted since", nil, map[kube.Key]auditedState{a: {"u", 5}}, touchedKeys{a: {}}, "[]", false},
		{"another scope's", &store.Row{Key: a, UID: "u", Version: 5, Scopes: others}, nil, nil, "[]", false},
		{"in this scope too", &store.Row{Key: a, UID: "u", Version: 5, Scopes: others}, map[kube.Key]auditedState{a: {"u", 5}}, nil, "[/a]", false},
		{"older at the server", &store.Row{Key: a, UID: "u", Version: 7, Scopes: mine}, map[kube.Key]auditedState{a: {"u", 5}}, nil, "[/a]", true},
		{"older at the server, as new as the list", &store.Row{Key: a, UID: "u", Version: 10, Scopes: mine}, map[kube.Key]auditedState{a: {"u", 5}}, nil, "[/a]", true},
		{"older at the server, heard of since", &store.Row{Key: a, UID: "u", Version: 7, Scopes: mine}, map[kube.Key]auditedState{a: {"u", 5}}, touchedKeys{a: {}}, "[]", false},
		{"another object in the same version", &store.Row{Key: a, UID: "u", Version: 5, Scopes: mine}, map[kube.Key]auditedState{a: {"v", 5}}, nil, "[/a]", true},
		{"cannot be compared", &store.Row{Key: a, UID: "u", Scopes: mine}, map[kube.Key]auditedState{a: {"u", 5}}, nil, "[]", false},
		{"cannot be decoded", &store.Row{Key: a, UID: "u", Version: 5, Scopes: mine, Undecodable: true}, map[kube.Key]auditedState{a: {"u", 5}}, nil, "[]", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var rows []*store.Row
			if test.held != nil {
				rows = append(rows, test.held)
			}
			d := lostIn(slices.Values(rows), 0, test.list, 10, test.since)
			if got := fmt.Sprint(d.Keys); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := len(d.Rewound) > 0; got != test.rewound {
				t.Errorf("the server's versions went back: got %t, want %t", got, test.rewound)
			}
		})
	}
}
