// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// protobufMark is the prefix of protobuf bodies.
const protobufMark = "k8s\x00"

// encodeBody returns the body to send: the text of the step, the bytes of "hex …", or, if
// the content type is protobuf and the text is JSON, its encoding as protobuf.
func encodeBody(text, contentType string) ([]byte, error) {
	if digits, ok := strings.CutPrefix(text, "hex "); ok {
		return hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	}
	if contentType != protobufType || !strings.HasPrefix(text, "{") {
		return []byte(text), nil
	}
	obj, _, err := clientscheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read the object to send as protobuf: %w", err)
	}
	var out bytes.Buffer
	err = protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme).Encode(obj, &out)
	return out.Bytes(), err
}

// decodeBody decodes an answer to plain values, whatever its form. It returns other content
// as text.
func decodeBody(raw []byte, contentType string) (any, error) {
	media, _, _ := mime.ParseMediaType(contentType)
	var body any
	switch {
	case len(raw) == 0:
		return nil, nil
	case media == protobufType:
		return decodeProtobuf(raw)
	case media == "application/yaml":
		return body, yaml.Unmarshal(raw, &body)
	case media == "application/json":
		return body, json.Unmarshal(raw, &body)
	}
	return string(raw), nil
}

// decodeProtobuf decodes one object in its envelope to plain values.
func decodeProtobuf(raw []byte) (body any, err error) {
	var envelope runtime.Unknown
	if !bytes.HasPrefix(raw, []byte(protobufMark)) {
		return nil, fmt.Errorf("an answer in protobuf begins with %.8q", raw)
	}
	if err := envelope.Unmarshal(raw[len(protobufMark):]); err != nil {
		return nil, err
	}
	obj, err := newMessage(envelope.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := obj.Unmarshal(envelope.Raw); err != nil {
		return nil, fmt.Errorf("read a %s in protobuf: %w", envelope.Kind, err)
	}
	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if fields, ok := body.(map[string]any); ok {
		fields["apiVersion"], fields["kind"] = envelope.APIVersion, envelope.Kind
	}
	return body, err
}

// message is implemented by every type with a protobuf form.
type message interface{ Unmarshal([]byte) error }

// newMessage returns an empty object of a kind. Some kinds of metadata and discovery are in
// no scheme.
func newMessage(kind schema.GroupVersionKind) (message, error) {
	switch kind.Kind {
	case "APIGroupDiscoveryList":
		return &apidiscovery.APIGroupDiscoveryList{}, nil
	case "PartialObjectMetadata":
		return &metav1.PartialObjectMetadata{}, nil
	case "PartialObjectMetadataList":
		return &metav1.PartialObjectMetadataList{}, nil
	}
	obj, err := clientscheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	m, ok := obj.(message)
	if !ok {
		return nil, fmt.Errorf("%s has no protobuf form", kind)
	}
	return m, nil
}
