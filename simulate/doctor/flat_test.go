// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/base64"
	"maps"
	"strings"
	"testing"
)

// Times and UIDs differ in each run, also inside the data of a Secret.
func TestFlatten_ReadsTheDataOfASecret(t *testing.T) {
	encode := func(text string) any { return base64.StdEncoding.EncodeToString([]byte(text)) }
	secret := map[string]any{"kind": "Secret", "data": map[string]any{
		"at": encode("2000-01-01T00:00:01Z"), "of": encode("owner 1234"), "key": encode("\xff\xfe"), "operation": encode("SLEEP"),
	}}
	want := flat{"data.at": "a time", "data.of": `"owner UID"`, "data.key": `"//4="`, "data.operation": `"SLEEP"`}
	if got := flatten(secret, strings.NewReplacer("1234", "UID").Replace); !maps.Equal(got, want) {
		t.Errorf("the fields are %v, want %v", got, want)
	}
	// The data of a ConfigMap are texts already.
	config := map[string]any{"kind": "ConfigMap", "data": map[string]any{"operation": encode("SLEEP")}}
	if got := flatten(config, strings.NewReplacer().Replace); got["data.operation"] != `"U0xFRVA="` {
		t.Errorf("the ConfigMap has %v", got)
	}
}
