// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command operator is the process that package hostile attacks. It prints a line for each
// ConfigMap that it reconciles, with the value of data.v.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

func main() {
	server := flag.String("server", "", "`URL` of the API server, without credentials")
	address := flag.String("webhooks", "", "`address` to serve webhooks on")
	certificates := flag.String("certificates", "", "`directory` of their certificate")
	_ = manager.ParseFlags(flag.CommandLine, os.Args[1:]) // it exits
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *server, *address, *certificates); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server, address, certificates string) error {
	mgr, err := manager.New(manager.Options{
		Config: &rest.Config{Host: server}, Scheme: clientscheme.Scheme, MetricsAddress: "0", HealthAddress: "0",
		Webhooks: webhook.Options{Address: address, CertDir: certificates, DrainDelay: -1},
		Client:   client.Options{RetryWithin: -1},
	})
	if err != nil {
		return err
	}
	webhook.Validate(mgr.Webhooks(), "/validate", func(_ context.Context, _ *webhook.Request, _, pod *corev1.Pod) error {
		if pod != nil && pod.Name == "panic" {
			panic("asked to")
		}
		return nil
	})
	webhook.Mutate(mgr.Webhooks(), "/mutate", func(_ context.Context, _ *webhook.Request, pod *corev1.Pod) error {
		pod.Labels = map[string]string{"seen": "yes"}
		return nil
	})
	maps := informer.For[*corev1.ConfigMap](mgr.Informers())
	if _, err := maps.AddHandler(func(e kube.Event[*corev1.ConfigMap]) {
		if e.New != nil {
			fmt.Println("seen", e.New.Name, e.New.Data["v"])
		}
	}, informer.HandlerOptions{Name: "print"}); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return lists(ctx, mgr.Client()) })); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

// lists lists Secrets in a loop, several lists concurrently, and ignores errors.
func lists(ctx context.Context, c *client.Client) error {
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for {
		large := (*client.TooLargeError)(nil)
		for _, err := range client.List[*corev1.Secret](ctx, c, client.InNamespace("default")) {
			if errors.As(err, &large) {
				fmt.Println("refused", large.Limit)
			}
			if err != nil {
				break
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
	}
}
