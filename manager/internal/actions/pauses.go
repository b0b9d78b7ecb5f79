// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"sync"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// Pauses makes the controllers of a process pause what the Lease says.
type Pauses struct {
	log logr.Logger
	// controllers are those of the process.
	controllers func() []inspect.Controllable
	// turn is held while the controllers are set, so that the newest Lease is applied last.
	turn sync.Mutex
	mu   struct {
		sync.Mutex
		version kube.Version // of the newest Lease
		lease   types.UID
		text    string // of its annotation
		record  record
	}
}

// NewPauses returns one that pauses nothing yet.
func NewPauses(log logr.Logger, controllers func() []inspect.Controllable) *Pauses {
	return &Pauses{log: log, controllers: controllers}
}

// Learn sets the controllers to what a Lease says, unless a newer one is known. An annotation that is
// malformed changes nothing.
func (p *Pauses) Learn(l *coordinationv1.Lease) {
	p.turn.Lock()
	defer p.turn.Unlock()
	before, now, changed, err := p.learn(l)
	if !changed {
		return
	}
	if err != nil {
		textlog.Warn(p.log, err, "The annotation of the Lease that says what is paused is malformed; pauses stay as they are",
			"annotation", Annotation)
		return
	}
	paused, resumed := difference(now, before), difference(before, now)
	for _, values := range paused {
		p.log.Info("Paused", values...)
	}
	for _, values := range resumed {
		p.log.Info("Resumed", values[:len(values)-2]...) // not by whom it was paused
	}
	for _, c := range p.controllers() {
		c.SetPauses(now.of(c.Name()))
	}
}

// learn keeps what a Lease says, and returns what was said before, and whether its annotation is
// another one.
func (p *Pauses) learn(l *coordinationv1.Lease) (before, now record, changed bool, err error) {
	version, text := kube.ParseVersion(l.ResourceVersion), l.Annotations[Annotation]
	p.mu.Lock()
	defer p.mu.Unlock()
	before = p.mu.record
	if version <= p.mu.version {
		return before, before, false, nil
	}
	p.mu.version, p.mu.lease = version, l.UID
	if text == p.mu.text {
		return before, before, false, nil
	}
	p.mu.text = text
	if now, err = decode(text); err == nil {
		p.mu.record = now
	}
	return before, now, true, err
}

// Set sets a controller, which may have joined since the last Learn. It does nothing to what is none,
// and if p is nil.
func (p *Pauses) Set(r any) {
	c, ok := r.(inspect.Controllable)
	if !ok || p == nil {
		return
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	now, _ := p.known()
	c.SetPauses(now.of(c.Name()))
}

func (p *Pauses) known() (record, types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.record, p.mu.lease
}

// Sign writes what is paused into a Lease that is to be created: the one before was deleted.
func (p *Pauses) Sign(l *coordinationv1.Lease) {
	if l.UID != "" {
		return
	}
	now, _ := p.known()
	if text, err := now.encode(); err == nil && text != "" {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, Annotation, text)
	}
}
