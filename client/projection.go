// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/origin"
	"github.com/flyball-dev/flyball/kube"
)

// An object of which an informer keeps only some fields must not be written as if it were
// whole: what it lacks would be removed from the server. Objects are judged before the
// request is sent:
//
//	Create, Update, Apply of it, MergePatch of it     refused
//	Update, Apply, Patch of its status                if the status is kept whole
//	PatchChanges, MergeFrom                           if both are copies of one object, and
//	                                                  every list that changes is kept whole

// projector is an Observer that knows which objects may lack fields, as
// *informer.SharedInformerFactory does.
type projector interface {
	Projected(kind schema.GroupVersionKind, obj kube.Object) (kept []string, projected bool)
}

// ProjectedObjectError reports that the call would write an object of which an informer keeps
// only some fields, and so would remove the others from the server. Nothing was sent.
type ProjectedObjectError struct {
	Kind schema.GroupVersionKind
	Key  kube.Key
	// Fields are kept by the informer, besides those of Scope.Fields that always are.
	Fields []string
	// List is the path of a list of which some fields are missing, if that is why the
	// change of an object is refused; a patch replaces a list as a whole. Empty: the
	// object itself would be written.
	List string

	why string
}

func (e *ProjectedObjectError) Error() string {
	kept := "names, labels and owners"
	if len(e.Fields) > 0 {
		kept = strings.Join(e.Fields, ", ")
	}
	return fmt.Sprintf("the informer keeps only some fields of the object (%s), and %s; Apply a new object with the fields that you want, "+
		"change fields that are kept with PatchChanges from the cached object to a kube.Copy of it, or read the whole object with Get and write that", kept, e.why)
}

// projection is what an informer keeps of an object; nil: all fields.
type projection struct{ kept []string }

func projectionOf(o Observer, at *call, obj kube.Object) *projection {
	if p, ok := o.(projector); ok && !isNil(obj) && !metadataOnly(obj) {
		if kept, projected := p.Projected(at.kind, obj); projected {
			return &projection{kept}
		}
	}
	return nil
}

// refused returns the error of a write of obj.
func (p *projection) refused(at *call, obj kube.Object, list, why string) error {
	return at.wrap(&ProjectedObjectError{Kind: at.kind, Key: kube.KeyOf(obj), Fields: slices.Clone(p.kept), List: list, why: why})
}

// alwaysKept are the lists that every informer keeps.
var alwaysKept = [...]string{"metadata.finalizers", "metadata.ownerReferences"}

// whole reports whether everything at path is kept.
func (p *projection) whole(path string) bool {
	holds := func(kept string) bool { return path == kept || strings.HasPrefix(path, kept+".") }
	return slices.ContainsFunc(p.kept, holds) || slices.ContainsFunc(alwaysKept[:], holds)
}

// checkWhole returns an error if obj is to be sent and lacks fields that the server would
// then remove.
func checkWhole(o Observer, at *call, obj kube.Object) error {
	p := projectionOf(o, at, obj)
	switch {
	case p == nil:
		return nil
	case at.sub == "":
		return p.refused(at, obj, "", "to write it would remove the others")
	case at.sub != statusName:
		return p.refused(at, obj, "", "to write its "+at.sub+" takes the whole object")
	case !p.whole(statusName):
		return p.refused(at, obj, "", "to write its status takes all of it; add \"status\" to the fields")
	case at.verb == verbUpdate && !p.whole("metadata.annotations"):
		// Built-in kinds take the metadata of an update of the status too.
		return p.refused(at, obj, "", "to update its status would remove its annotations; patch or apply the status, or add \"metadata.annotations\" to the fields")
	}
	return nil
}

// checkChange returns an error if a merge patch from one object to another concerns fields
// that one of them lacks.
func checkChange(o Observer, at *call, from, to kube.Object, patch map[string]any) error {
	p := projectionOf(o, at, from)
	if p == nil {
		if p = projectionOf(o, at, to); p == nil {
			return nil
		}
	}
	if !origin.Same(from, to) {
		return p.refused(at, to, "", "the changed object is no copy of the one as it was read, so they differ by fields that one of them lacks")
	}
	if list := p.splits(patch, ""); list != "" {
		return p.refused(at, to, list, "the change would replace the list "+list+", of which it keeps less than the whole")
	}
	return nil
}

// checkPatch returns an error if a patch of obj is made of objects that lack fields.
func checkPatch(o Observer, at *call, obj kube.Object, patch Patch, body []byte) error {
	if patch.sent != nil {
		if err := checkWhole(o, at, patch.sent); err != nil {
			return err
		}
	}
	if patch.from == nil || projectionOf(o, at, patch.from) == nil && projectionOf(o, at, obj) == nil {
		return nil
	}
	var change map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &change); err != nil {
		return at.wrap(err)
	}
	return checkChange(o, at, patch.from, obj, change)
}

var escaped = strings.NewReplacer(".", `\.`, ",", `\,`, `\`, `\\`)

// splits returns the path of a list in a merge patch that is not kept whole, or nothing.
func (p *projection) splits(patch map[string]any, prefix string) string {
	for name, value := range patch {
		path := prefix + escaped.Replace(name)
		switch v := value.(type) {
		case map[string]any:
			if list := p.splits(v, path+"."); list != "" {
				return list
			}
		case []any:
			if !p.whole(path) {
				return path
			}
		}
	}
	return ""
}
