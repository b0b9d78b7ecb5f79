// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import "k8s.io/apimachinery/pkg/runtime/schema"

var (
	coreEvents  = schema.GroupResource{Resource: "events"}
	laterEvents = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}

	// eventFields are the fields of an Event that its later group calls otherwise.
	eventFields = map[string]string{
		"involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
		"source": "deprecatedSource", "count": "deprecatedCount",
		"firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
	}
	// eventReporters are always there in the older group, and not if empty in the
	// later one.
	eventReporters = []string{"reportingComponent", "reportingController", "reportingInstance"}
)

// joinEventsLocked has the two groups of Events be versions of one resource,
// held as the older one.
func (s *Server) joinEventsLocked() {
	f := familyOf(s.mu.families[coreEvents].storage, s.mu.families[laterEvents].storage)
	f.convert = convertEvent
	s.removeFamilyLocked(laterEvents)
	s.installLocked(f)
	s.mu.families[laterEvents] = f
}

// convertEvent is an Event of one group as the other has it.
func convertEvent(obj *object, _, to *Kind) (*object, error) {
	fields := loose(obj, to).Object
	for _, name := range eventReporters {
		if fields[name] == "" {
			delete(fields, name)
		}
	}
	later := to.Group == laterEvents.Group
	for was, is := range eventFields {
		if !later {
			was, is = is, was
		}
		if value, ok := fields[was]; ok {
			delete(fields, was)
			fields[is] = value
		}
	}
	for _, name := range []string{"reportingComponent", "reportingInstance"} {
		if _, ok := fields[name]; !ok && !later {
			fields[name] = ""
		}
	}
	return &object{fields: fields, poison: obj.poison}, nil
}
