// Package manifests tests the Helm chart and the compose file in the folder deploy. The tests use
// the libraries of Helm, Kubernetes and Compose that `helm lint`, `helm template` and `docker
// compose config` call. The module is one of its own, since these libraries are larger than the
// server and must not become dependencies of it.
package manifests
