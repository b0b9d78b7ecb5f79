// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/codec"
	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/internal/textlog"
)

const (
	// managedPeriod is the interval at which the Secret and the targets are checked.
	managedPeriod = 10 * time.Second
	// managedRetry is the delay after a failure; it doubles up to managedPeriod.
	managedRetry = time.Second
	// managedPause is the delay before the second of managedTries; it doubles too.
	managedPause = 50 * time.Millisecond
	// managedTimeout bounds one check.
	managedTimeout = 30 * time.Second
	// managedTries is how often a write that conflicts is attempted.
	managedTries = 5
)

// managed keeps the serving certificate in line with the Secret, and the Secret in line
// with keyring.go.
type managed struct {
	Managed
	held *keypair.Holder
	rest rest.Interface
	sim  simhook.Hooks // set by keep; nil: none

	ring          keyring   // the last that worked; used only by keep
	injected      []byte    // the bundle that all targets have
	injectedSince time.Time // since when; zero: they do not

	mu struct {
		sync.Mutex
		problems []error // of the targets
		pending  error   // why not all targets have received a bundle yet; nil: they have
	}
}

func newManaged(opts Managed, held *keypair.Holder, cfg *rest.Config) (*managed, error) {
	if cfg == nil {
		return nil, errors.New("Managed needs a connection to the API server; give webhook.New its configuration")
	}
	cfg = rest.CopyConfig(cfg)
	_, serializer, err := codec.For(corev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	cfg.NegotiatedSerializer = serializer
	cfg.ContentType, cfg.AcceptContentTypes = "application/json", "application/json"
	c, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, err
	}
	m := &managed{Managed: opts, held: held, rest: c}
	m.mu.pending = errors.New("no webhook configuration has the CA bundle yet")
	return m, nil
}

func (m *managed) policy() policy {
	return policy{names: m.names(), lifetime: m.Lifetime, authorityLifetime: m.AuthorityLifetime}
}

// keep maintains the Secret and its targets until ctx ends.
func (m *managed) keep(ctx context.Context, log logr.Logger) {
	m.sim = simhook.Of(ctx)
	for failed := 0; ; {
		next := managedPeriod
		if m.round(ctx, log) {
			failed = 0
		} else {
			failed++
			next = m.pause(failed, managedRetry, managedPeriod)
		}
		if !sleep.For(ctx, next) {
			return
		}
	}
}

// pause returns the delay after so many failures in a row: it doubles from first to
// longest, with jitter of up to half, so that replicas spread out.
func (m *managed) pause(failed int, first, longest time.Duration) time.Duration {
	whole := min(first<<min(failed-1, 16), longest)
	return whole - simhook.Duration(m.sim, "webhook certificate retry", whole/2)
}

// round makes one check. It reports whether everything is in the desired state.
func (m *managed) round(ctx context.Context, log logr.Logger) bool {
	ctx, cancel := context.WithTimeout(ctx, managedTimeout)
	defer cancel()
	ring, err := m.reconcileSecret(ctx, log)
	if err != nil {
		err = fmt.Errorf("keep the certificate in secret %s/%s: %w", m.Namespace, m.Secret, err)
		if m.held.Miss(err) && ctx.Err() == nil {
			log.Error(err, "Cannot get a certificate; "+m.held.Meanwhile())
		}
		return false
	}
	if served, _ := m.held.Offer(ring.serving, time.Now()); served {
		log.Info("Serving a certificate", "secret", m.Namespace+"/"+m.Secret, "notAfter", ring.serving.Leaf.NotAfter.Format(time.RFC3339))
	}
	m.ring = ring
	return m.injectAll(ctx, log, ring.bundle())
}

// reconcileSecret applies steps until the Secret is in the desired state, and returns its
// keyring.
func (m *managed) reconcileSecret(ctx context.Context, log logr.Logger) (keyring, error) {
	var err error
	for try := range managedTries {
		if err != nil && !sleep.For(ctx, m.pause(try, managedPause, managedRetry)) {
			break
		}
		var secret *corev1.Secret
		if secret, err = m.read(ctx); err != nil {
			return keyring{}, err
		}
		now := time.Now()
		ring := readKeyring(secret.Data)
		if !ring.works(now, m.policy()) && m.ring.works(now, m.policy()) {
			ring = m.ring // the Secret was deleted or damaged: restore it
		} else if s := ring.step(now, m.known(ring, now), m.policy()); s == stepKeep {
			return ring, nil
		} else if ring, err = ring.take(s, now, m.policy()); err != nil {
			return ring, err
		} else {
			log.Info("Updating the webhooks' key ring", "secret", m.Namespace+"/"+m.Secret, "step", s)
		}
		ring.write(secret.Data)
		err = m.write(ctx, secret)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || err == nil {
			continue // another replica was first, or a further step may follow
		}
		return ring, err
	}
	return keyring{}, fmt.Errorf("tried %d times: %w", managedTries, errors.Join(err, errors.New("it was changed by others each time")))
}

// known returns how long all targets have trusted the authorities of ring; negative:
// they do not.
func (m *managed) known(ring keyring, now time.Time) time.Duration {
	if m.injectedSince.IsZero() || string(m.injected) != string(ring.bundle()) {
		return -1
	}
	return now.Sub(m.injectedSince)
}

// injectAll sets the bundle in all targets. It reports whether all have it.
func (m *managed) injectAll(ctx context.Context, log logr.Logger, bundle []byte) bool {
	var problems []error
	var pending error
	changed, all := false, true
	for _, t := range m.targets() {
		wrote, err := m.inject(ctx, t, bundle)
		if err != nil {
			err = fmt.Errorf("%s: %w", t, err)
			problems = append(problems, err)
		}
		switch {
		case apierrors.IsNotFound(err):
			// A target that does not exist sends no requests; look for it again later.
		case err != nil:
			all = false
			if pending == nil && !apierrors.IsForbidden(err) && !errors.Is(err, errElsewhere) {
				pending = err
			}
		case wrote:
			changed = true
			log.Info("Updated the CA bundle", "target", t.String())
		}
	}
	if news := m.setProblems(problems, pending); news != nil && ctx.Err() == nil {
		log.Error(news, "Cannot update the CA bundle of every webhook configuration")
	}
	switch {
	case !all:
		m.injectedSince = time.Time{}
	case changed || m.injectedSince.IsZero() || string(m.injected) != string(bundle):
		m.injected, m.injectedSince = bundle, time.Now()
	}
	return all
}

// setProblems stores the problems of the targets and returns them if they are new. Once no
// target is pending, none becomes pending again.
func (m *managed) setProblems(problems []error, pending error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, now := errors.Join(m.mu.problems...), errors.Join(problems...)
	m.mu.problems = problems
	if m.mu.pending != nil {
		m.mu.pending = pending
	}
	if now == nil || before != nil && before.Error() == now.Error() {
		return nil
	}
	return now
}

func (m *managed) problems() []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.problems
}

// pending returns why a target has not received its first bundle; nil: all have, or
// waiting would not help.
func (m *managed) pending() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.pending
}

// inject sets the bundle in one target. It reports whether that changed it.
func (m *managed) inject(ctx context.Context, t target, bundle []byte) (bool, error) {
	var conflict error
	for try := range managedTries {
		if conflict != nil && !sleep.For(ctx, m.pause(try, managedPause, managedRetry)) {
			break
		}
		raw, err := m.rest.Get().AbsPath(t.path).Do(ctx).Raw()
		if err != nil {
			return false, err
		}
		ops, err := injection(raw, m.Managed, bundle)
		if err != nil || len(ops) == 0 {
			return false, err
		}
		body, err := json.Marshal(ops)
		if err != nil {
			return false, err
		}
		err = m.rest.Patch(types.JSONPatchType).AbsPath(t.path).Param("fieldManager", fieldManager).Body(body).Do(ctx).Error()
		if !apierrors.IsConflict(err) {
			return err == nil, err
		}
		conflict = err
	}
	return false, fmt.Errorf("it was changed by others each time: %w", conflict)
}

// fieldManager of the writes to the Secret and the targets.
const fieldManager = "flyball-webhook"

func (m *managed) path() string { return "/api/v1/namespaces/" + m.Namespace + "/secrets" }

// read returns the Secret; a missing one is empty and has no version.
func (m *managed) read(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	res := m.rest.Get().AbsPath(m.path(), m.Secret).Do(textlog.Quiet(ctx))
	err := redact.Error(res.Error())
	if err == nil {
		err = redact.Decoding(res.Into(secret))
	}
	if apierrors.IsNotFound(err) {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Secret}, Type: corev1.SecretTypeTLS}
		err = nil
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	return secret, err
}

// write stores the Secret if it has not changed since it was read.
func (m *managed) write(ctx context.Context, secret *corev1.Secret) error {
	secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	request := m.rest.Post().AbsPath(m.path())
	if secret.ResourceVersion != "" {
		request = m.rest.Put().AbsPath(m.path(), m.Secret)
	}
	return redact.Error(request.Param("fieldManager", fieldManager).Body(secret).Do(textlog.Quiet(ctx)).Error())
}
