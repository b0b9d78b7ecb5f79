// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/kube"
)

// frame decodes one frame of a watch. The objects do not share memory with raw.
// After an error the stream is not reliable.
func (d *Decoder) frame(protobuf bool, raw []byte) (frame listwatch.Frame[kube.Object], err error) {
	var typ, object []byte
	if protobuf {
		typ, object, err = encoding.SplitProtobufEvent(raw)
	} else {
		var ok bool
		if typ, object, ok = encoding.SplitCompactEvent(raw); !ok {
			typ, object, err = encoding.SplitJSONEvent(raw)
		}
	}
	if err != nil {
		return frame, err
	}
	switch listwatch.FrameType(typ) {
	case listwatch.FrameAdded:
		frame.Type = listwatch.FrameAdded
	case listwatch.FrameModified:
		frame.Type = listwatch.FrameModified
	case listwatch.FrameDeleted:
		frame.Type = listwatch.FrameDeleted
	case listwatch.FrameBookmark:
		frame.Type = listwatch.FrameBookmark
		return d.bookmark(protobuf, object)
	case listwatch.FrameError:
		return listwatch.Frame[kube.Object]{Type: listwatch.FrameError, Err: discreet(d.kind, statusError(object))}, nil
	default:
		return frame, fmt.Errorf("read watch event: type %q is not known", shorten(typ))
	}
	if !protobuf {
		if d.screen != nil {
			if item, foreign := d.screened(object, false, frame.Type == listwatch.FrameAdded); foreign {
				frame.Item = item
				return frame, nil
			}
		}
		frame.Item = d.jsonItem(object, false, decodelimit.Alone())
		return frame, nil
	}
	e, err := encoding.OpenEnvelope(object)
	if err != nil {
		return frame, err
	}
	if apiVersion, kind := string(e.APIVersion), string(e.Kind); !d.isKind(apiVersion, kind) {
		id, idErr := encoding.ProtobufIdentity(e.Raw)
		frame.Item = d.stranger(id, apiVersion, kind, idErr)
		return frame, nil
	}
	if d.screen != nil {
		if item, foreign := d.screened(e.Raw, true, frame.Type == listwatch.FrameAdded); foreign {
			frame.Item = item
			return frame, nil
		}
	}
	frame.Item = d.protobufItem(e.Raw, decodelimit.Alone())
	return frame, nil
}

// bookmark decodes the metadata of a bookmark's object.
func (d *Decoder) bookmark(protobuf bool, object []byte) (frame listwatch.Frame[kube.Object], err error) {
	var meta metav1.ObjectMeta
	if err := encoding.MetadataFits(protobuf, object); err != nil {
		return frame, fmt.Errorf("read bookmark: %w", err)
	}
	if protobuf {
		e, err := encoding.OpenEnvelope(object)
		if err != nil {
			return frame, err
		}
		_, metadata, _, err := encoding.CutField(e.Raw, encoding.ObjectMetadata)
		if err != nil {
			return frame, fmt.Errorf("read bookmark: %w", err)
		}
		if err := encoding.Guard(func() error { return meta.Unmarshal(metadata) }); err != nil {
			return frame, fmt.Errorf("read bookmark: %w", err)
		}
	} else {
		into := struct {
			Metadata *metav1.ObjectMeta `json:"metadata"`
		}{&meta}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(object, &into); err != nil {
			return frame, fmt.Errorf("read bookmark: %w", err)
		}
	}
	if meta.ResourceVersion == "" {
		return frame, errors.New("read bookmark: it has no resourceVersion")
	}
	return listwatch.Frame[kube.Object]{
		Type:             listwatch.FrameBookmark,
		Item:             listwatch.Item[kube.Object]{ResourceVersion: meta.ResourceVersion},
		InitialEventsEnd: meta.Annotations[metav1.InitialEventsAnnotationKey] == "true",
	}, nil
}
