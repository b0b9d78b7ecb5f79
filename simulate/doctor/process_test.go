// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"io"
	"testing"
)

func TestLife_ComplaintsNameTheUsersLines(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   []wrong
	}{
		"nothing": {"I1130 main.go:1] a panic: is only mentioned\n", nil},
		"panic": {`started
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation]

goroutine 57 [running]:
k8s.io/apimachinery/pkg/util/runtime.HandleCrash({0x0, 0x0, 0x0})
	/mod/k8s.io/apimachinery/pkg/util/runtime/runtime.go:89 +0x1d
panic({0x1, 0x2})
	/go/src/runtime/panic.go:785 +0x132
example.com/shop/internal.(*Reconciler).size(...)
	/src/shop/internal/size.go:12
example.com/shop/internal.(*Reconciler).Reconcile(0xc000, {0x1, 0x2})
	/src/shop/internal/reconciler.go:81 +0x4a
`, []wrong{{"panic", "panic: runtime error: invalid memory address or nil pointer dereference at internal/size.go:12 (internal.(*Reconciler).size)"}}},
		"race": {`WARNING: DATA RACE
Write at 0x00c0001 by goroutine 9:
  runtime.mapassign_faststr()
      /go/src/runtime/map.go:1 +0x0
  main.(*shop).count()
      /src/shop/main.go:30 +0x84
  main.main.func1()
      /src/shop/main.go:20 +0x2c

Previous read at 0x00c0001 by goroutine 8:
  main.(*shop).show()
      /src/shop/main.go:40 +0x5a

Goroutine 9 (running) created at:
  main.main()
      /src/shop/main.go:19 +0x10
`, []wrong{{"data race", "WARNING: DATA RACE at shop/main.go:30 (main.(*shop).count), and at shop/main.go:40 (main.(*shop).show)"}}},
	} {
		l := &life{}
		if _, err := io.WriteString(&l.output, c.output); err != nil {
			t.Fatal(err)
		}
		got := l.output.complaints()
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
