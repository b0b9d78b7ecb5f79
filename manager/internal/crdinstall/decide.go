// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdinstall

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Annotation of a CustomResourceDefinition lists what managers have installed, the newest last: the
// hash of the spec, and after a dash that of labels and annotations. It identifies an older program
// by what it wants.
const Annotation = "flyball.dev/crd-history"

// most is how many hashes are kept.
const most = 64

// Action is what to do with a CustomResourceDefinition.
type Action int

// The actions.
const (
	Keep   Action = iota // leave it as it is
	Create               // it does not exist
	Update               // replace it
)

// Decision is what a program does with the CustomResourceDefinition of the server.
type Decision struct {
	Action Action
	// Object to write; nil if it is kept.
	Object map[string]any
	// Older is set if the CustomResourceDefinition is kept because it has replaced the one
	// that this program wants.
	Older bool
}

// NarrowingError says what an update would take from clients.
type NarrowingError struct {
	Narrowings []Narrowing
}

func (e *NarrowingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "an update would narrow it, so nothing was written:")
	for i, n := range e.Narrowings {
		if i == shown {
			fmt.Fprintf(&b, "\n\tand %d more", len(e.Narrowings)-i)
			break
		}
		fmt.Fprintf(&b, "\n\t%s", n)
	}
	return b.String()
}

// shown is how many changes an error lists.
const shown = 20

// Decide returns what to do so that the server has a CustomResourceDefinition with which a
// program works that wants want. have is the server's; nil: it has none. The result shares
// parts with neither. The error is a *NarrowingError.
func Decide(have, want map[string]any) (Decision, error) {
	spec, whole := identify(want)
	if have == nil {
		out := runtime.DeepCopyJSON(want)
		delete(out, "status")
		annotate(out, []string{whole})
		return Decision{Action: Create, Object: out}, nil
	}
	history := historyOf(have)
	newest := len(history) - 1
	at, known := slices.Index(history, whole), lastOf(history, spec)
	out := merge(have, want)
	before, after := normalized(have), normalized(out)
	switch {
	case equal(before, after) && at >= 0:
		return Decision{}, nil
	case equal(before, after):
		annotate(out, append(history, whole))
		return Decision{Action: Update, Object: out}, nil
	case at >= 0 && at < newest || known >= 0 && known < newest:
		return Decision{Older: true}, nil
	}
	if lost := Narrowings(have, out); len(lost) > 0 {
		if known >= 0 {
			return Decision{Older: true}, nil // by whoever changed it after this program's version
		}
		return Decision{}, &NarrowingError{lost}
	}
	relabeled := at < 0 && equal(before["spec"], after["spec"])
	if known >= 0 && !relabeled && len(Narrowings(out, have)) == 0 {
		return Decision{Older: true}, nil
	}
	if at < 0 {
		history = append(history, whole)
	}
	annotate(out, history)
	return Decision{Action: Update, Object: out}, nil
}

// merge returns have with the spec of want, and its labels and annotations in addition. The
// caBundle of a webhook that is the same stays, since it is set at run time.
func merge(have, want map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(have)
	spec := runtime.DeepCopyJSON(object(want["spec"]))
	out["spec"] = spec
	if before, after := clientConfig(object(have["spec"])), clientConfig(spec); after != nil && after["caBundle"] == nil && before["caBundle"] != nil {
		if equal(before["url"], after["url"]) && equal(serviceOf(before), serviceOf(after)) {
			after["caBundle"] = before["caBundle"]
		}
	}
	metadata := metadataOf(out)
	for _, field := range []string{"labels", "annotations"} {
		added := object(object(want["metadata"])[field])
		if len(added) == 0 {
			continue
		}
		all := object(metadata[field])
		if all == nil {
			all = node{}
			metadata[field] = all
		}
		maps.Copy(all, runtime.DeepCopyJSON(added))
	}
	return out
}

func clientConfig(spec node) node {
	return object(object(object(spec["conversion"])["webhook"])["clientConfig"])
}

// serviceOf returns the Service of a webhook with its default port.
func serviceOf(config node) node {
	service := maps.Clone(object(config["service"]))
	if service != nil && service["port"] == nil {
		service["port"] = int64(443)
	}
	return service
}

// normalized returns what decides whether two CustomResourceDefinitions are the same: the spec
// with the server's defaults, labels and annotations without the history.
func normalized(crd map[string]any) node {
	crd = runtime.DeepCopyJSON(crd)
	spec := object(crd["spec"])
	if spec == nil {
		spec = node{}
	}
	if named := object(spec["names"]); named != nil {
		kind := text(named["kind"])
		for field, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
			if text(named[field]) == "" {
				named[field] = value
			}
		}
	}
	if strategy(spec) == "" {
		spec["conversion"] = node{"strategy": "None"}
	}
	if config := clientConfig(spec); config["service"] != nil {
		config["service"] = serviceOf(config)
	}
	metadata := object(crd["metadata"])
	annotations := object(metadata["annotations"])
	delete(annotations, Annotation)
	return node{"spec": trimmed(spec), "labels": metadata["labels"], "annotations": annotations}
}

// trimmed removes what the server leaves out: null, false, empty lists and empty texts, and
// empty objects unless they mean something.
func trimmed(v any) any {
	switch v := v.(type) {
	case node:
		for key, value := range v {
			if slices.Contains([]string{"default", "enum", "example"}, key) {
				continue // values of users
			}
			if key == "properties" {
				for _, property := range object(value) {
					trimmed(property) // its name is not a keyword
				}
			} else {
				value = trimmed(value)
			}
			v[key] = value
			nested, isNode := value.(node)
			if value == nil || value == false || value == "" || isNode && len(nested) == 0 && key != "status" {
				delete(v, key)
			} else if l, isList := value.([]any); isList && len(l) == 0 {
				delete(v, key)
			}
		}
		return v
	case []any:
		for i := range v {
			v[i] = trimmed(v[i])
		}
	}
	return v
}

// identify returns what a program is known by: the hash of its spec, and that with the hash of its
// labels and annotations, if it has some. A build with other labels is no newer than the spec is.
func identify(want map[string]any) (spec, whole string) {
	all := normalized(want)
	spec = hash(all["spec"])
	whole = spec
	labels, annotations := object(all["labels"]), object(all["annotations"])
	if len(labels)+len(annotations) > 0 {
		whole += "-" + hash([]any{labels, annotations})
	}
	return spec, whole
}

func hash(v any) string {
	text, err := json.Marshal(v) // maps are sorted
	if err != nil {
		text = fmt.Append(nil, v) // not JSON; the server refuses it
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// lastOf returns the place of the last program with a spec, or -1.
func lastOf(history []string, spec string) int {
	for i, entry := range slices.Backward(history) {
		if of, _, _ := strings.Cut(entry, "-"); of == spec {
			return i
		}
	}
	return -1
}

func historyOf(crd map[string]any) []string {
	line := text(object(object(crd["metadata"])["annotations"])[Annotation])
	return strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' })
}

func annotate(crd map[string]any, history []string) {
	if len(history) > most {
		history = history[len(history)-most:]
	}
	metadata := metadataOf(crd)
	annotations := object(metadata["annotations"])
	if annotations == nil {
		annotations = node{}
		metadata["annotations"] = annotations
	}
	annotations[Annotation] = strings.Join(history, ",")
}

func metadataOf(crd map[string]any) node {
	metadata := object(crd["metadata"])
	if metadata == nil {
		metadata = node{}
		crd["metadata"] = metadata
	}
	return metadata
}

// equal reports whether two JSON values are equal; numbers are by value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case node:
		b, ok := b.(node)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	if x, y := number(a), number(b); x != nil && y != nil {
		return x.Cmp(y) == 0
	}
	return a == b
}

// show renders a value for an error.
func show(v any) string {
	if v == nil {
		return "none"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > 200 {
		return string(text[:200]) + "…"
	}
	return string(text)
}
