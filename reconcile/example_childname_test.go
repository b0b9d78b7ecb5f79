// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"fmt"
	"strings"

	"github.com/flyball-dev/flyball/reconcile"
)

// Different arguments give different names, and each is valid.
func ExampleChildName() {
	fmt.Println(reconcile.ChildName("blog", "config"))
	fmt.Println(reconcile.ChildName("blog", "shard", "0"))
	fmt.Println(reconcile.ChildName("a-b", "c"))
	fmt.Println(reconcile.ChildName("a", "b-c"))
	fmt.Println(len(reconcile.ChildName(strings.Repeat("long", 60), "config", "and-more")))
	// Output:
	// blog-config
	// blog-shard--0
	// a-b-c
	// a-b-c-2ndsnfv5503m6vcqgc5h
	// 253
}

// A Service's name is a DNS label, so it begins with a letter and has no dots.
func ExampleChildDNSLabel() {
	fmt.Println(reconcile.ChildDNSLabel("blog", "web"))
	fmt.Println(reconcile.ChildDNSLabel("blog.example.com", "web"))
	// Output:
	// blog-web
	// blog-example-com-web-qz817ny6wmfa7s6c3sac
}

// A name of more than 63 characters is not valid as a label's value.
func ExampleLabelValue() {
	fmt.Println(reconcile.LabelValue("blog"))
	fmt.Println(len(reconcile.LabelValue(strings.Repeat("long", 60))))
	// Output:
	// blog
	// 63
}
