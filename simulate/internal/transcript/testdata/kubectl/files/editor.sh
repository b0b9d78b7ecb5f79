#!/bin/sh
sed -i "s/nginx:1/nginx:7/" "$1"
