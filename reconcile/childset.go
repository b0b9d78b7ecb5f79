// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/memo"
	"github.com/flyball-dev/flyball/kube"
)

// ErrNothingWanted is returned by Apply when no child is wanted and it would prune all
// of them. If that is intended, call PruneAll.
var ErrNothingWanted = errors.New("no child is wanted although there are some; call PruneAll to delete them all")

// ChildWriter writes children. *client.Client implements it.
type ChildWriter interface {
	// ReadChild returns the metadata of the object on the server with child's kind,
	// namespace and name. If there is none, apierrors.IsNotFound holds for the error.
	// It does not modify child.
	ReadChild(ctx context.Context, child kube.Object) (kube.Object, error)
	// ApplyChild applies child on the server as fieldOwner, empty: the writer's own,
	// and takes over fields of others. It sets child to the stored object. It may omit the
	// request if that would change nothing. It calls confirm before it sends one, unless
	// confirm is nil, and sends none and returns the error if there is one.
	ApplyChild(ctx context.Context, child kube.Object, fieldOwner string, confirm func(context.Context) error) error
	// EnsureChild sets child to the object on the server with its kind, namespace and name.
	// If there is none, it calls prepare, returns its error if there is one, and creates child
	// as fieldOwner. It never changes an existing object, even if that is created in between.
	EnsureChild(ctx context.Context, child kube.Object, fieldOwner string, prepare func(context.Context) error) (created bool, err error)
	// DeleteToRecreate deletes is, the object on the server, at its UID and resourceVersion with
	// the propagation, if the server would accept child as a new object; otherwise it returns
	// the error of that.
	DeleteToRecreate(ctx context.Context, child, is kube.Object, propagation metav1.DeletionPropagation) error
	// ChildOwner returns the writer's own field owner.
	ChildOwner() string
	// DeleteChild deletes child if the object on the server still has its UID and
	// resourceVersion; otherwise it returns a conflict. child may come from a Lister.
	DeleteChild(ctx context.Context, child kube.Object) error
}

// ChildSetOptions of a ChildSet. The zero value is fit for production.
type ChildSetOptions struct {
	// FieldOwner of applied children; empty: the writer's own. What this owner has not
	// applied is not pruned. A child of Once has this name with the suffix "-once" as its
	// owner.
	FieldOwner string
	// Labels that each child gets, and that are required for pruning. They separate the
	// sets of one parent, if it has several. Empty: the set includes all objects of its
	// kinds that the parent controls.
	Labels map[string]string
	// Adopt makes Apply take over existing objects with wanted names that have no
	// controller. Otherwise they are an error, because someone else may have created
	// them.
	Adopt bool
	// AskParent makes Apply and PruneAll ask the server, before they write or delete a child,
	// whether the parent is still what the cache has: that it exists, is not being deleted
	// since, and has the same generation and labels, or without a generation the same
	// resourceVersion. That needs the right to get parents, and costs one request per call
	// that sends any. Otherwise, while the watch of the parents is late, children that the parent
	// wants by now are pruned, the children of a deleted parent are created as fast as the
	// garbage collector deletes them, and those of one that another process serves by now
	// (manager.Sharding) are written by both. A watch that has gone silent is late for up to
	// 150 seconds, and where the server sends no bookmarks for up to ten and a half minutes.
	AskParent bool
}

// ChildSet brings the children of a parent to the desired state: it applies the wanted
// ones and prunes the others. One set serves all parents of a controller. Create it
// with NewChildSet; it is safe for concurrent use.
type ChildSet struct {
	writer ChildWriter
	scheme *runtime.Scheme
	kinds  map[schema.GroupKind]ChildKind
	opts   ChildSetOptions
	misuse error

	foreign   memo.Memo[types.UID, string]        // versions of objects that the parent controls and the set has not made
	recreated memo.Memo[Child, [sha256.Size]byte] // digests of the content of children that were deleted for it
}

// NewChildSet returns a set of children of the given kinds, written by w. Kinds of
// children and parents are looked up in scheme. Invalid arguments are a terminal error
// of each call.
//
//	children := reconcile.NewChildSet(mgr.Client(), mgr.Scheme(), []reconcile.ChildKind{
//		reconcile.Children(deployments), reconcile.Children(services),
//	}, reconcile.ChildSetOptions{FieldOwner: "website"})
func NewChildSet(w ChildWriter, scheme *runtime.Scheme, kinds []ChildKind, opts ChildSetOptions) *ChildSet {
	s := &ChildSet{writer: w, scheme: scheme, kinds: map[schema.GroupKind]ChildKind{}, opts: opts}
	var problems []error
	if isNil(w) {
		problems = append(problems, errors.New("the writer is nil; give a client, such as mgr.Client()"))
	}
	if scheme == nil {
		problems = append(problems, errors.New("the scheme is nil; give mgr.Scheme()"))
	}
	if len(kinds) == 0 {
		problems = append(problems, errors.New("it has no kinds; give each kind of child by reconcile.Children"))
	}
	for _, k := range kinds {
		if k.children == nil || k.misuse != nil {
			problems = append(problems, cmp.Or(k.misuse, errors.New("a kind is empty; make it with reconcile.Children")))
			continue
		}
		if _, double := s.kinds[k.kind.GroupKind()]; double {
			problems = append(problems, fmt.Errorf("kind %s is given twice", k.kind.Kind))
		}
		s.kinds[k.kind.GroupKind()] = k
	}
	if len(problems) > 0 {
		s.misuse = Terminal(fmt.Errorf("child set: %w", errors.Join(problems...)))
	}
	return s
}

// Apply makes wanted the children of parent. It sets parent as their controller, adds
// the set's labels, and applies them in order. If all succeed, it prunes: it deletes
// the objects of the set's kinds and with its labels that the parent controls, that the
// set has applied or created, and that are not wanted. It never deletes anything else,
// deletes each only at the version in the cache, and logs each deletion. Who has applied
// an object is in its managedFields; where the informer drops them, which is the default,
// Apply reads them from the server before it prunes, which needs the right to get.
//
// A wanted child with another controller is an *AlreadyControlledError, and an existing
// one without a controller is an error unless Options.Adopt is set. If the cache has no
// object with a wanted name, Apply asks the server, because an informer may select
// objects and its cache may lag. Objects that the cache never has are never pruned, so
// the informer of a kind must include everything that the set applies. An error of one
// child does not prevent applying the others, but prevents pruning. If nothing is
// wanted and something would be pruned, the error is ErrNothingWanted. A child that
// cannot be in the set, such as one of another kind, is a terminal error, and nothing
// is written.
//
// A *client.Client sends no apply whose outcome is known: the same was applied before, and
// the cache has the child as the server answered (see client.IfChanged). So watch the
// children, or others' changes of them are undone only by the next Apply after the event.
//
// The wanted objects belong to the caller, and are set to the stored objects; Once makes one
// that is created and then left alone. parent is not modified. The report describes what was
// done, also with an error.
func (s *ChildSet) Apply(ctx context.Context, parent kube.Object, wanted ...kube.Object) (ChildReport, error) {
	var report ChildReport
	plan, err := s.plan(parent, wanted)
	if err != nil {
		return report, err
	}
	var failed []error
	confirm := s.confirmation(parent)
	for _, child := range plan.wanted {
		if err := s.apply(ctx, parent, child, confirm, &report); err != nil {
			failed = append(failed, fmt.Errorf("child %s: %w", child.name, err))
		}
	}
	if len(failed) > 0 {
		return report, errors.Join(failed...)
	}
	surplus, err := s.proven(ctx, parent, plan.surplus)
	switch {
	case err != nil:
		return report, err
	case len(wanted) == 0 && len(surplus) > 0:
		return report, fmt.Errorf("children of %s: %w (%d)", keyText(kube.KeyOf(parent)), ErrNothingWanted, len(surplus))
	}
	return report, s.prune(ctx, surplus, confirm, &report)
}

// PruneAll deletes all children of parent, as Apply would if none was wanted. It
// returns when the server has accepted the deletions; the report is empty if there was
// nothing left to delete.
func (s *ChildSet) PruneAll(ctx context.Context, parent kube.Object) (ChildReport, error) {
	var report ChildReport
	plan, err := s.plan(parent, nil)
	if err != nil {
		return report, err
	}
	surplus, err := s.proven(ctx, parent, plan.surplus)
	if err != nil {
		return report, err
	}
	return report, s.prune(ctx, surplus, s.confirmation(parent), &report)
}

// child is one object with its kind, and where it is read.
type child struct {
	name   Child
	object kube.Object
	kind   ChildKind
	fill   func() // of Once. Nil means that the child is applied.
}

type childPlan struct{ wanted, surplus []child }

func (s *ChildSet) plan(parent kube.Object, wanted []kube.Object) (plan childPlan, err error) {
	if s.misuse != nil {
		return plan, s.misuse
	}
	if isNil(parent) || parent.GetUID() == "" {
		return plan, Terminal(errors.New("children: the parent is nil or has no UID; pass one that was read from the server"))
	}
	names := map[Child]bool{}
	for i, obj := range wanted {
		c, err := s.childOf(parent, obj)
		if err == nil && names[c.name.unversioned()] {
			err = fmt.Errorf("%s is wanted twice", c.name)
		}
		if err != nil {
			return plan, Terminal(fmt.Errorf("child %d of %s: %w", i+1, keyText(kube.KeyOf(parent)), err))
		}
		names[c.name.unversioned()] = true
		plan.wanted = append(plan.wanted, c)
	}
	for _, kind := range s.inOrder() {
		is, err := kind.children(parent.GetUID())
		if err != nil {
			return plan, err
		}
		for _, obj := range is {
			c := child{name: Child{Kind: kind.kind, Key: kube.KeyOf(obj)}, object: obj, kind: kind}
			if !names[c.name.unversioned()] && s.prunable(parent, obj) {
				plan.surplus = append(plan.surplus, c)
			}
		}
	}
	return plan, nil
}

// childOf returns obj as a child of the set, with its owner and labels.
func (s *ChildSet) childOf(parent, obj kube.Object) (c child, err error) {
	var fill func()
	if o, ok := obj.(*once); ok {
		obj, fill = o.Object, o.fill
	}
	if isNil(obj) {
		return c, errors.New("it is nil")
	}
	kind, err := kindOf(obj, s.scheme)
	if err != nil {
		return c, err
	}
	c = child{name: Child{Kind: kind, Key: kube.KeyOf(obj)}, object: obj, kind: s.kinds[kind.GroupKind()], fill: fill}
	switch {
	case c.kind.children == nil:
		return c, fmt.Errorf("%s is of a kind that the set was not made with, so it would never be pruned; give reconcile.Children of its informer to NewChildSet", c.name)
	case obj.GetName() == "":
		return c, fmt.Errorf("a %s has no name; reconcile.ChildName makes one", kind.Kind)
	}
	if err := SetControllerReference(parent, obj, s.scheme); err != nil {
		return c, err
	}
	if len(s.opts.Labels) > 0 {
		labels := map[string]string{}
		maps.Copy(labels, obj.GetLabels())
		maps.Copy(labels, s.opts.Labels)
		obj.SetLabels(labels)
	}
	return c, nil
}

// prunable reports whether the parent controls obj, obj belongs to the set, and it is
// not being deleted.
func (s *ChildSet) prunable(parent metav1.Object, obj kube.Object) bool {
	return metav1.IsControlledBy(obj, parent) && obj.GetDeletionTimestamp() == nil && s.labeled(obj)
}

// labeled reports whether obj has the set's labels.
func (s *ChildSet) labeled(obj kube.Object) bool {
	for name, value := range s.opts.Labels {
		if is, has := obj.GetLabels()[name]; !has || is != value {
			return false
		}
	}
	return true
}

// apply applies a child. confirm returns an error if nothing is to be written.
func (s *ChildSet) apply(ctx context.Context, parent kube.Object, c child, confirm func(context.Context) error, report *ChildReport) error {
	if c.fill != nil {
		return s.keep(ctx, parent, c, confirm, report)
	}
	is, err := c.kind.get(c.name.Key)
	if apierrors.IsNotFound(err) {
		is, err = s.writer.ReadChild(ctx, c.object)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	missing := err != nil
	if !missing {
		if err := s.mayTake(parent, is); err != nil {
			return err
		}
		if c.kind.recreate != "" && is.GetDeletionTimestamp() != nil {
			return ErrChildTerminating
		}
	}
	if err := s.writer.ApplyChild(ctx, c.object, s.opts.FieldOwner, confirm); err != nil {
		if c.kind.recreate == "" || missing || !apierrors.IsInvalid(err) || !metav1.IsControlledBy(is, parent) {
			return err
		}
		return s.recreate(ctx, c, is, confirm, err, report)
	}
	switch {
	case missing:
		report.Created = append(report.Created, c.name)
	case is.GetResourceVersion() == c.object.GetResourceVersion():
		report.Unchanged = append(report.Unchanged, c.name)
	default:
		report.Updated = append(report.Updated, c.name)
	}
	return nil
}

// confirmation returns a function that asks the server once whether the parent is what the
// cache has. Nil: it is not to be asked.
func (s *ChildSet) confirmation(parent kube.Object) func(context.Context) error {
	if !s.opts.AskParent {
		return nil
	}
	confirmed := false
	return func(ctx context.Context) error {
		if confirmed {
			return nil
		}
		is, err := s.writer.ReadChild(ctx, parent)
		switch {
		case apierrors.IsNotFound(err) || err == nil && is.GetUID() != parent.GetUID():
			return ErrParentGone
		case err != nil:
			return err
		case !sameIntent(parent, is):
			return ErrParentChanged
		}
		confirmed = true
		return nil
	}
}

// sameIntent reports whether a newer version of an object, as its metadata shows, asks for the
// same. Annotations are not compared, because informers need not keep them.
func sameIntent(cached, is kube.Object) bool {
	return cached.GetResourceVersion() == is.GetResourceVersion() ||
		is.GetGeneration() != 0 && cached.GetGeneration() == is.GetGeneration() &&
			(cached.GetDeletionTimestamp() == nil) == (is.GetDeletionTimestamp() == nil) && maps.Equal(cached.GetLabels(), is.GetLabels())
}

func (s *ChildSet) mayTake(parent, is kube.Object) error {
	switch controller := metav1.GetControllerOfNoCopy(is); {
	case controller == nil && !s.opts.Adopt:
		return fmt.Errorf("object %s exists and has no controller; rename it, delete it, or set ChildSetOptions.Adopt", keyText(kube.KeyOf(is)))
	case controller != nil && controller.UID != parent.GetUID():
		return fmt.Errorf("%w; give the child another name, or delete that object", &AlreadyControlledError{Object: kube.KeyOf(is), Controller: *controller})
	}
	return nil
}

func (s *ChildSet) prune(ctx context.Context, surplus []child, confirm func(context.Context) error, report *ChildReport) error {
	if confirm != nil && len(surplus) > 0 {
		if err := confirm(ctx); err != nil {
			return fmt.Errorf("prune children: %w", err)
		}
	}
	log := logr.FromContextOrDiscard(ctx)
	var failed []error
	for _, c := range surplus {
		switch err := s.writer.DeleteChild(ctx, c.object); {
		case err == nil:
			log.Info("Pruned a child that is not wanted", "kind", c.name.Kind.Kind, "child", keyText(c.name.Key), "uid", c.object.GetUID())
			report.Pruned = append(report.Pruned, c.name)
		case IgnoreNotFound(err) != nil:
			failed = append(failed, fmt.Errorf("prune child %s: %w", c.name, err))
		}
	}
	return errors.Join(failed...)
}

// inOrder returns the kinds sorted by name, so that equal states lead to equal
// requests.
func (s *ChildSet) inOrder() []ChildKind {
	return slices.SortedFunc(maps.Values(s.kinds), func(a, b ChildKind) int {
		return cmp.Compare(a.kind.GroupKind().String(), b.kind.GroupKind().String())
	})
}
