// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package guestbook is an operator as kubebuilder lays one out: a kind, its webhooks, a
// controller, and a suite that starts envtest. It knows nothing of flyball.
package guestbook

import (
	"context"
	"errors"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

var groupVersion = schema.GroupVersion{Group: "webapp.example.com", Version: "v1"}

// Guestbook has pages.
type Guestbook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GuestbookSpec   `json:"spec,omitempty"`
	Status GuestbookStatus `json:"status,omitempty"`
}

// GuestbookSpec is what is wanted.
type GuestbookSpec struct {
	Title string `json:"title"`
	Pages int32  `json:"pages,omitempty"`
}

// GuestbookStatus is what there is.
type GuestbookStatus struct {
	Pages int32 `json:"pages,omitempty"`
}

// GuestbookList is a list of Guestbooks.
type GuestbookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Guestbook `json:"items"`
}

// DeepCopyObject returns a copy.
func (g *Guestbook) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject returns a copy.
func (l *GuestbookList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Guestbook))
	}
	return &out
}

func addToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(groupVersion, &Guestbook{}, &GuestbookList{})
	metav1.AddToGroupVersion(s, groupVersion)
	return nil
}

// reconciler writes a ConfigMap for each Guestbook.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var book Guestbook
	if err := r.Get(ctx, req.NamespacedName, &book); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: book.Namespace, Name: book.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, page, func() error {
		page.Data = map[string]string{"title": book.Spec.Title, "pages": strconv.Itoa(int(book.Spec.Pages))}
		return controllerutil.SetControllerReference(&book, page, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	book.Status.Pages = book.Spec.Pages
	return ctrl.Result{}, r.Status().Update(ctx, &book)
}

func (r *reconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Guestbook{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// hooks are the webhooks of Guestbooks.
type hooks struct{}

func (hooks) setup(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &Guestbook{}).WithDefaulter(hooks{}).WithValidator(hooks{}).Complete()
}

func (hooks) Default(_ context.Context, book *Guestbook) error {
	book.Spec.Title = strings.TrimSpace(book.Spec.Title)
	return nil
}

func (hooks) ValidateCreate(_ context.Context, book *Guestbook) (admission.Warnings, error) {
	if strings.Contains(book.Spec.Title, "forbidden") {
		return nil, errors.New("the title is forbidden")
	}
	return nil, nil
}

func (h hooks) ValidateUpdate(ctx context.Context, _, book *Guestbook) (admission.Warnings, error) {
	return h.ValidateCreate(ctx, book)
}

func (hooks) ValidateDelete(context.Context, *Guestbook) (admission.Warnings, error) { return nil, nil }
