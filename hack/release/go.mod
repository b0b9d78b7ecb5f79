module github.com/flyball-dev/flyball/hack/release

go 1.26.0

require golang.org/x/mod v0.43.0
