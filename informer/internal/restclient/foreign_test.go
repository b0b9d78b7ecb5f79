// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/shards"
)

// Objects of other shards are dropped from pages and frames, and what the screen is not sure of is
// decoded.
func TestDecoder_DropsObjectsOfOtherShards_I14(t *testing.T) {
	pods := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	pods.ResourceVersion, pods.ShardInfo = "9", &metav1.ShardInfo{Selector: "some"}
	held := 0
	division := shards.Division{By: shards.UID, Count: 3, Held: shards.SetOf(0)}
	for i := range 30 {
		pod := fixture.SeedPod(fmt.Sprint("pod-", i))
		pod.UID = types.UID(fmt.Sprint("uid-", i))
		if shards.Of(string(pod.UID), 3) == 0 {
			held++
		}
		pods.Items = append(pods.Items, *pod)
	}
	scheme := fixture.TestScheme()
	for _, peer := range []fixture.Peer{fixture.ProtobufPeer(scheme), fixture.JSONPeer(scheme)} {
		d := decoderOf[*corev1.Pod](t, fixture.PodKind)
		d.screen = encoding.NewShardScreen(division)
		d.kept.Foreign = &Foreign{}
		page, err := d.page(peer.Media, peer.Encode(t, pods))
		if err != nil || len(page.Items) != held || page.Foreign != 30-held || page.ShardSelector != "some" {
			t.Errorf("%s: the page has %d objects and %d others of %q (%v), want %d and %d", peer.Media, len(page.Items), page.Foreign, page.ShardSelector, err, held, 30-held)
		}
		if n := d.kept.Foreign.Objects.Load(); n != uint64(30-held) {
			t.Errorf("%s: %d objects are counted, want %d", peer.Media, n, 30-held)
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			wire := peer.Frame(t, listwatch.FrameDeleted, pod)
			if peer.Media == ContentProtobuf {
				wire = wire[4:]
			}
			frame, err := d.frame(peer.Media == ContentProtobuf, wire)
			foreign := shards.Of(string(pod.UID), 3) != 0
			if err != nil || frame.Item.ResourceVersion != pod.ResourceVersion || (frame.Item.Anomaly == base.Foreign) != foreign || (frame.Item.Object == nil) != foreign {
				t.Errorf("%s: the frame of a foreign pod %v is %+v, %v", peer.Media, foreign, frame, err)
			}
		}
	}
}

func TestDecoder_DropsFromListsThatTellTheirKindLast_I14(t *testing.T) {
	d := decoderOf[*fixture.Site](t, fixture.SiteKind)
	d.screen = encoding.NewShardScreen(shards.Division{By: shards.UID, Count: 3})
	list := func(kind string, items ...string) []byte {
		return []byte(`{"metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `],"kind":"` + kind + `","apiVersion":"example.com/v1"}`)
	}
	site := fixture.JSONSite("a", `{"content":"x"}`)
	nameless := strings.Replace(site, `"kind":"Site",`, ``, 1)
	if page, err := d.page(ContentJSON, list("SiteList", site, nameless)); err != nil || page.Foreign != 1 || len(page.Items) != 1 {
		t.Errorf("the page has %d objects and %d others (%v), want the one that does not name its kind", len(page.Items), page.Foreign, err)
	}
	if page, err := d.page(ContentJSON, list("OtherList", nameless)); err == nil {
		t.Errorf("a list of another kind is read as %+v", page)
	}
}
