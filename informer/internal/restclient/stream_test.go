// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// inChunks reads a text in pieces of random sizes, some with many frames.
type inChunks struct {
	text   []byte
	random *rand.Rand
}

func (r *inChunks) Read(p []byte) (int, error) {
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1+r.random.IntN(1<<r.random.IntN(20)))], r.text)
	r.text = r.text[n:]
	return n, nil
}

// seen is all of what Next returned.
type seen struct {
	frame listwatch.Frame[kube.Object]
	raw   string
	err   string
}

// readAll reads a stream to its end, and past garbled frames.
func readAll(d *Decoder, protobuf, together bool, src io.Reader) (all []seen) {
	s := NewStream(tContext, io.NopCloser(src), protobuf, d, nil)
	s.setTogether(together)
	for {
		frame, err := s.Next()
		one := seen{frame: frame, raw: string(frame.Item.Raw)}
		one.frame.Item.Raw = nil
		if err != nil {
			one.err = err.Error()
		}
		all = append(all, one)
		if _, garbled := err.(*encoding.GarbledFrame); err != nil && !garbled {
			return all
		}
	}
}

// Frames that are decoded together come in the order and with the content of frames that are
// decoded one by one: objects, errors, garbage, and what follows the list.
func TestStream_DecodedTogetherIsTheSame_I8(t *testing.T) {
	d := decoderOf[*corev1.Pod](t, corev1.SchemeGroupVersion.WithKind("Pod")).keeping(Kept{Parts: true})
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		peer := fixture.JSONPeer(fixture.TestScheme())
		if seed%2 == 0 {
			peer = fixture.ProtobufPeer(fixture.TestScheme())
		}
		protobuf := peer.Media == ContentProtobuf
		var wire []byte
		end := random.IntN(300)
		for n := range 300 {
			pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("pod-", n), Namespace: "prod", UID: types.UID(fmt.Sprint(n)), ResourceVersion: fmt.Sprint(n + 1),
				Annotations: map[string]string{"text": string(bytes.Repeat([]byte("x"), random.IntN(1<<random.IntN(15))))},
			}}
			switch typ := listwatch.FrameAdded; {
			case n == end:
				pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				wire = append(wire, peer.Frame(t, listwatch.FrameBookmark, pod)...)
			case random.IntN(20) == 0 && !protobuf:
				wire = append(wire, "garbage\n"...)
			case random.IntN(20) == 0:
				wire = append(wire, peer.Frame(t, listwatch.FrameError, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 410})...)
			case random.IntN(20) == 0:
				pod.Name = ""
				fallthrough
			default:
				if random.IntN(4) == 0 {
					typ = listwatch.FrameModified
				}
				wire = append(wire, peer.Frame(t, typ, pod)...)
			}
		}
		want := readAll(d, protobuf, false, &inChunks{wire, random})
		got := readAll(d, protobuf, true, &inChunks{wire, random})
		if len(got) != len(want) {
			t.Fatalf("seed %d: got %d frames, want %d", seed, len(got), len(want))
		}
		for i := range want {
			got[i].frame.Item.Heap, want[i].frame.Item.Heap = 0, 0 // which object has a shared part first may differ
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("seed %d: frame %d: got %+v, want %+v", seed, i, got[i], want[i])
			}
		}
	}
}

// No frame waits for those after it.
func TestStream_ReadsNoFurtherThanOneFrame(t *testing.T) {
	d := decoderOf[*corev1.Pod](t, corev1.SchemeGroupVersion.WithKind("Pod"))
	peer := fixture.ProtobufPeer(fixture.TestScheme())
	read := 0
	src := readerFunc(func(p []byte) (int, error) {
		read++
		return copy(p, peer.Frame(t, listwatch.FrameAdded, fixture.SeedPod(fmt.Sprint(read)))), nil
	})
	s := NewStream(tContext, io.NopCloser(src), true, d, nil)
	s.setTogether(true)
	for n := 1; n < 100; n++ {
		frame, err := s.Next()
		if err != nil || frame.Item.Key.Name != fmt.Sprint(n) || read != n {
			t.Fatalf("frame %d: got %s and %v after %d reads, want one read for each frame", n, frame.Item.Key, err, read)
		}
	}
}

// After the list, a watch that waits holds neither the buffer of the list nor what was decoded.
func TestStream_AfterTheListHoldsNothingOfIt_D6(t *testing.T) {
	d := decoderOf[*corev1.Pod](t, corev1.SchemeGroupVersion.WithKind("Pod"))
	peer := fixture.ProtobufPeer(fixture.TestScheme())
	var wire []byte
	for n := range 1000 {
		wire = append(wire, peer.Frame(t, listwatch.FrameAdded, fixture.SeedPod(fmt.Sprint(n)))...)
	}
	end := fixture.SeedPod("")
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	wire = append(wire, peer.Frame(t, listwatch.FrameBookmark, end)...)
	s := NewStream(tContext, io.NopCloser(bytes.NewReader(wire)), true, d, nil)
	s.setTogether(true)
	for range 1001 {
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Next(); err != io.EOF {
		t.Fatalf("got %v, want the end of the stream", err)
	}
	if s.together || s.decoded != nil || cap(s.frames.Buf) > encoding.SmallBuffer {
		t.Errorf("it holds %d frames, and a buffer of %d bytes", cap(s.decoded), cap(s.frames.Buf))
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
