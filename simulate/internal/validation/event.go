// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateCoreEvent holds an Event of the core API. One with a time of its own
// says who reports it.
func validateCoreEvent(o *corev1.Event) (errs field.ErrorList) {
	timed := !o.EventTime.IsZero()
	errs = validateEventHome(o.Namespace, o.InvolvedObject.Namespace, timed)
	if timed {
		errs = append(errs, needed("reportingComponent", o.ReportingController)...)
		errs = append(errs, needed("reportingInstance", o.ReportingInstance)...)
		errs = append(errs, needed("action", o.Action)...)
		errs = append(errs, needed("reason", o.Reason)...)
	}
	return errs
}

// validateEvent holds an Event of the events API, which asks for more than the
// core one, and lets nothing but the series be changed.
func validateEvent(o, old *eventsv1.Event) field.ErrorList {
	timed := !o.EventTime.IsZero()
	if old != nil {
		return append(validateEventHome(o.Namespace, o.Regarding.Namespace, timed), validateEventUpdate(o, old)...)
	}
	errs := validateEventHome(o.Namespace, o.Regarding.Namespace, timed)
	if !timed {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if o.Type != corev1.EventTypeNormal && o.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", o.Type)))
	}
	if timed {
		errs = append(errs, needed("reportingController", o.ReportingController)...)
		errs = append(errs, needed("reportingInstance", o.ReportingInstance)...)
		errs = append(errs, needed("action", o.Action)...)
		errs = append(errs, needed("reason", o.Reason)...)
	}
	return append(errs, validateSeries(o.Series)...)
}

// validateEventUpdate names fields as the core API does.
func validateEventUpdate(o, old *eventsv1.Event) (errs field.ErrorList) {
	if !reflect.DeepEqual(o.Series, old.Series) {
		errs = validateSeries(o.Series)
	}
	for _, each := range []struct {
		name    string
		is, was any
	}{
		{"involvedObject", o.Regarding, old.Regarding}, {"reason", o.Reason, old.Reason}, {"message", o.Note, old.Note},
		{"source", o.DeprecatedSource, old.DeprecatedSource}, {"firstTimestamp", o.DeprecatedFirstTimestamp, old.DeprecatedFirstTimestamp},
		{"lastTimestamp", o.DeprecatedLastTimestamp, old.DeprecatedLastTimestamp}, {"count", o.DeprecatedCount, old.DeprecatedCount},
		{"reason", o.Reason, old.Reason}, {"type", o.Type, old.Type}, {"eventTime", o.EventTime, old.EventTime},
		{"action", o.Action, old.Action}, {"related", o.Related, old.Related},
		{"reportingController", o.ReportingController, old.ReportingController}, {"reportingInstance", o.ReportingInstance, old.ReportingInstance},
	} {
		errs = append(errs, apivalidation.ValidateImmutableField(each.is, each.was, field.NewPath(each.name))...)
	}
	return errs
}

func validateSeries(s *eventsv1.EventSeries) (errs field.ErrorList) {
	if s == nil {
		return nil
	}
	if s.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if s.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// validateEventHome holds an Event to the namespace of what it is about. What
// has none is told of in the default one.
func validateEventHome(home, of string, timed bool) field.ErrorList {
	switch {
	case of == "" && (home == metav1.NamespaceDefault || timed && home == metav1.NamespaceSystem):
	case of == home, of != "" && timed:
	default:
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), of, "does not match event.namespace")}
	}
	return nil
}

// needed is that a field must have a value.
func needed(name, value string) field.ErrorList {
	if value != "" {
		return nil
	}
	return field.ErrorList{field.Required(field.NewPath(name), "")}
}
