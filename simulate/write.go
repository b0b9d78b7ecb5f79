// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// largestBody is what the server reads of a request.
const largestBody = 3 << 20

// write answers create, update, patch and delete.
func (s *Server) write(w http.ResponseWriter, c *call) error {
	body, err := io.ReadAll(io.LimitReader(c.Body, largestBody+1))
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if len(body) > largestBody {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", largestBody))
	}
	answer, code, err := s.store(c, body)
	if err != nil {
		return err
	}
	if s.losesResponse() {
		panic(http.ErrAbortHandler)
	}
	respond(w, c.encoder, code, answer)
	return nil
}

func (s *Server) losesResponse() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.faults.loseResponses == 0 {
		return false
	}
	s.mu.faults.loseResponses--
	return true
}

// store does what c asks for, and returns the answer.
func (s *Server) store(c *call, body []byte) (answer []byte, code int, err error) {
	var obj *object
	code = http.StatusOK
	switch c.verb {
	case "create":
		code = http.StatusCreated
		obj, err = s.create(c, body)
	case "update":
		obj, err = s.update(c, body)
	case "patch":
		obj, err = s.patch(c, body)
	case "delete":
		return s.delete(c, body)
	}
	if err != nil {
		return nil, 0, err
	}
	answer, err = c.encoder.object(obj)
	return answer, code, err
}

// decode reads the object of a request.
func (c *call) decode(body []byte) (*object, error) {
	media, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type"))
	obj := &object{}
	if media == contentProtobuf {
		typed, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if obj.fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	} else if err := json.Unmarshal(body, &obj.fields); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding %s: %v", c.kind.Kind, err))
	}
	return obj, c.check(obj)
}

// check holds the object of a request against its path.
func (c *call) check(obj *object) error {
	if obj.fields == nil {
		return apierrors.NewBadRequest("the object is empty")
	}
	m := obj.meta()
	if kind := m.GetKind(); kind != "" && kind != c.kind.Kind {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s", kind, m.GetAPIVersion(), c.kind.Kind))
	}
	if m.GetNamespace() == "" && c.kind.Namespaced {
		m.SetNamespace(c.namespace)
	}
	switch {
	case m.GetNamespace() != c.namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	case c.name != "" && m.GetName() != c.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), c.name))
	}
	return nil
}

func (c *call) key() types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: c.name}
}

func (s *Server) create(c *call, body []byte) (*object, error) {
	obj, err := c.decode(body)
	if err != nil {
		return nil, err
	}
	obj.meta().SetUID("")
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.createLocked(c.kind, obj)
}

func (s *Server) update(c *call, body []byte) (*object, error) {
	obj, err := c.decode(body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.mu.log.get(c.kind.resource(), c.key())
	if old == nil {
		return nil, apierrors.NewNotFound(c.kind.resource(), c.name)
	}
	return s.updateLocked(c.kind, old, obj)
}

func (s *Server) patch(c *call, body []byte) (*object, error) {
	if media, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type")); media != string(types.MergePatchType) {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: "the body of the request was in an unknown format - accepted media types include: " + string(types.MergePatchType),
		}}
	}
	var patch map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.mu.log.get(c.kind.resource(), c.key())
	if old == nil {
		return nil, apierrors.NewNotFound(c.kind.resource(), c.name)
	}
	obj := &object{fields: merge(old.copy().fields, patch)}
	if err := c.check(obj); err != nil {
		return nil, err
	}
	return s.updateLocked(c.kind, old, obj)
}

// merge is a JSON merge patch (RFC 7386) of an object. It changes into.
func merge(into, patch map[string]any) map[string]any {
	if into == nil {
		into = map[string]any{}
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(into, name)
		case map[string]any:
			inner, _ := into[name].(map[string]any)
			into[name] = merge(inner, value)
		default:
			into[name] = value
		}
	}
	return into
}

// decodeDeletion reads the options of a delete; an empty body has none.
func (c *call) decodeDeletion(body []byte) (metav1.DeleteOptions, error) {
	var opts metav1.DeleteOptions
	if len(body) == 0 {
		return opts, nil
	}
	if media, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type")); media != contentProtobuf {
		if err := json.Unmarshal(body, &opts); err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		return opts, nil
	}
	decoded, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return opts, apierrors.NewBadRequest(err.Error())
	}
	given, ok := decoded.(*metav1.DeleteOptions)
	if !ok {
		return opts, apierrors.NewBadRequest(fmt.Sprintf("a %T is not DeleteOptions", decoded))
	}
	return *given, nil
}

func (s *Server) delete(c *call, body []byte) ([]byte, int, error) {
	opts, err := c.decodeDeletion(body)
	if err != nil {
		return nil, 0, err
	}
	obj, gone, err := s.deleteKey(c.kind, c.key(), opts.Preconditions)
	if err != nil {
		return nil, 0, err
	}
	if !gone {
		answer, err := c.encoder.object(obj)
		return answer, http.StatusOK, err
	}
	answer, err := c.encoder.status(metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK, Details: &metav1.StatusDetails{
		Name: c.name, Group: c.kind.Group, Kind: c.kind.Resource, UID: obj.meta().GetUID(),
	}})
	return answer, http.StatusOK, err
}

func (s *Server) deleteKey(kind *Kind, key types.NamespacedName, only *metav1.Preconditions) (*object, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.mu.log.get(kind.resource(), key)
	if old == nil {
		return nil, false, apierrors.NewNotFound(kind.resource(), key.Name)
	}
	return s.deleteLocked(kind, old, only)
}
