// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-flyball shows in a terminal what an operator does, and why each key was
// reconciled. As a plugin of kubectl it is kubectl flyball:
//
//	go install github.com/flyball-dev/flyball/cmd/kubectl-flyball@latest
//
//	kubectl flyball status               what is wrong, the controllers and the informers
//	kubectl flyball keys [CONTROLLER]    the keys, by filter, state and order
//	kubectl flyball why KIND NAME        the last reconciles of an object, as a story
//	kubectl flyball informers            each list and watch
//	kubectl flyball watch                the status, whenever it has changed
//	kubectl flyball record [1m]          a recording, which can be replayed
//	kubectl flyball run, pause, resume   act on a controller or a key, if the program takes actions
//
//	             kubeconfig ──▶ Leases, Deployments, Pods (find.go) ──▶ one Pod, or those that
//	                                                                      │ share objects (fleet.go)
//	  text ◀── story.go, tables.go ◀── JSON (ask.go) ◀── pods/portforward (forward.go)
//	                                       ▲
//	  a program on this machine ───────────┘ --address
//
// It reads the JSON that docs/console.md describes. It opens no port: requests are sent through
// the connection to the API server. A token is sent only after the operator has asked for one.
//
// # Concurrency
//
// Requests are sent one after the other.
//
// # Testing
//
// The text is compared with golden files. A manager with its controller is asked over loopback,
// with and without the guard; Pods are found on the simulated API server, also those of replicas
// that share objects; and a port is forwarded by a server with the upgrades of a kubelet, over
// WebSocket and over SPDY.
package main
