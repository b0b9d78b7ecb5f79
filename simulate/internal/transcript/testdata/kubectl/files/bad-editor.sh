#!/bin/sh
sed -i "s/replicas: [0-9]*/replicas: many/" "$1"
