// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

func setupHandOver(mgr *manager.Manager, kinds []reconcile.ChildKind) *reconcile.ChildSet {
	writer := mgr.Client().With(client.HandOver{"manager"}) // as the old program wrote
	return reconcile.NewChildSet(writer, mgr.Scheme(), kinds, reconcile.ChildSetOptions{FieldOwner: "website"})
}

// A program that wrote by Update now applies.
func ExampleHandOver() {
	var mgr *manager.Manager // of your program
	setupHandOver(mgr, nil)
}
