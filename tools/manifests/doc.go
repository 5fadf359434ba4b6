// Package manifests has the tests of the Helm chart and of the compose file in the folder deploy,
// with the libraries of Helm, Kubernetes and Compose. They are what `helm lint`, `helm template`
// and `docker compose config` call. The module is one of its own, since these libraries are
// larger than the server, which none of them may reach.
package manifests
