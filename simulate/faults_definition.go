// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

// rewritten is appended to the descriptions of schemas by RewriteDefinition.
const rewritten = " (rewritten)"

// RewriteDefinition stores the CRD of a kind with other descriptions in its schemas, like a
// client that applies its next version: the watches of the kind end, and the published
// schemas change. A second call restores the descriptions. No object changes.
func (s *Server) RewriteDefinition(r schema.GroupResource) error {
	key := types.NamespacedName{Name: r.String()}
	old := s.store.Get(kinds.Definitions, key)
	if old == nil {
		return apierrors.NewNotFound(kinds.Definitions, key.Name)
	}
	obj := old.Copy()
	spec, _ := obj.Fields["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, each := range versions {
		version, _ := each.(map[string]any)
		given, _ := version["schema"].(map[string]any)
		if root, _ := given["openAPIV3Schema"].(map[string]any); root != nil {
			text, _ := root["description"].(string)
			if was, ok := strings.CutSuffix(text, rewritten); ok {
				root["description"] = was
			} else {
				root["description"] = text + rewritten
			}
		}
	}
	if err := kinds.CompleteDefinition(obj); err != nil {
		return fmt.Errorf("rewrite the CRD %s: %w", key.Name, err)
	}
	tx := s.store.Begin()
	defer tx.End()
	if tx.Get(kinds.Definitions, key) != old {
		return apierrors.NewConflict(kinds.Definitions, key.Name, nil)
	}
	_, err := s.writes.Direct(tx).Update(s.kinds.Stored(kinds.Definitions), old, obj)
	return err
}
