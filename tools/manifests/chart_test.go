package manifests_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"
)

const chartDir = "../../deploy/helm/cellserver"

// envoyDir has an Envoy beside the chart.
const envoyDir = "../../deploy/helm/envoy"

// installations are values that operators set, and the kinds of objects that come of them.
var installations = map[string]struct {
	values string
	kinds  string
}{
	"by default": {"{}", "ConfigMap NetworkPolicy PodDisruptionBudget Service Service StatefulSet"},
	"monitored": {
		"{auth: {existingSecret: s}, admin: {enabled: true}, serviceMonitor: {enabled: true, labels: {release: p}}, prometheusRule: {enabled: true}}",
		"ConfigMap NetworkPolicy PodDisruptionBudget PrometheusRule Service Service ServiceMonitor StatefulSet",
	},
	"for gateways": {
		"{http: {enabled: true}, rls: {enabled: true}, rules: {files: {shop.yaml: \"domain: shop\\n\"}}, config: {http-gateway: nginx}}",
		"ConfigMap ConfigMap NetworkPolicy PodDisruptionBudget Service Service StatefulSet",
	},
	"with rules of others": {
		"{http: {enabled: true, port: 8000}, rules: {existingConfigMap: limits}}",
		"ConfigMap NetworkPolicy PodDisruptionBudget Service Service StatefulSet",
	},
	"several with a store": {
		"{replicas: 3, store: {existingSecret: u}, config: {fail-policy: local, store-servers: 3}, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}",
		"ConfigMap NetworkPolicy PodDisruptionBudget Service Service StatefulSet",
	},
	"bare": {
		"{persistence: {enabled: false}, networkPolicy: {enabled: false}, podDisruptionBudget: {enabled: false}, resources: {}, imagePullSecrets: [{name: r}]}",
		"ConfigMap Service Service StatefulSet",
	},
	"for some": {
		"{networkPolicy: {clients: [{namespaceSelector: {matchLabels: {team: a}}}]}, service: {type: LoadBalancer, annotations: {a: b}}, persistence: {size: 10Gi, storageClassName: fast}, nodeSelector: {disk: ssd}, tolerations: [{key: k, operator: Exists}], podAnnotations: {c: d}}",
		"ConfigMap NetworkPolicy PodDisruptionBudget Service Service StatefulSet",
	},
}

func values(t *testing.T, text string) map[string]any {
	t.Helper()
	v := map[string]any{}
	require.NoError(t, sigsyaml.Unmarshal([]byte(text), &v))
	return v
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	require.NoError(t, err)
	return c
}

// render does what helm template does: it checks values against the schema and fills in the
// templates. The manifests are in the order of their files.
func render(t *testing.T, text string) (objects []runtime.Object, err error) {
	t.Helper()
	return renderAs(t, "limits", text)
}

// renderAs does what render does, for a release with the given name.
func renderAs(t *testing.T, release, text string) (objects []runtime.Object, err error) {
	t.Helper()
	c := load(t)
	all, err := chartutil.ToRenderValues(c, values(t, text), chartutil.ReleaseOptions{Name: release, Namespace: "prod", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, err
	}
	for name, content := range files {
		if strings.HasSuffix(name, ".yaml") {
			objects = append(objects, decode(t, name, content)...)
		}
	}
	return objects, nil
}

// decode reads manifests strictly: a field that Kubernetes does not know, or that is there
// twice, is an error. Kinds of the operator of Prometheus are checked as YAML alone.
func decode(t *testing.T, name, content string) (objects []runtime.Object) {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, _, err := strict.Decode(document, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			u := &unstructured.Unstructured{}
			require.NoError(t, sigsyaml.UnmarshalStrict(document, &u.Object), "%s\n%s", name, document)
			require.Equal(t, "monitoring.coreos.com/v1", u.GetAPIVersion(), name)
			object, err = u, nil
		}
		require.NoError(t, err, "%s\n%s", name, document)
		objects = append(objects, object)
	}
}

// TestChartIsFoundGood: helm lint --strict has nothing to say, whatever is set.
func TestChartIsFoundGood(t *testing.T) {
	for name, c := range installations {
		result := lint.All(chartDir, values(t, c.values), "prod", true)
		for _, m := range result.Messages {
			require.Less(t, m.Severity, support.WarningSev, "%s: %s", name, m)
		}
	}
}

// TestChartMakesWhatKubernetesKnows renders the chart for each installation and reads the
// manifests as Kubernetes does.
func TestChartMakesWhatKubernetesKnows(t *testing.T) {
	for name, c := range installations {
		t.Run(name, func(t *testing.T) {
			objects, err := render(t, c.values)
			require.NoError(t, err)
			var kinds []string
			for _, o := range objects {
				kinds = append(kinds, o.GetObjectKind().GroupVersionKind().Kind)
			}
			require.ElementsMatch(t, strings.Fields(c.kinds), kinds)
		})
	}
}

// TestChartRefusesWhatWouldNotWork: before anything is installed, and with the reason.
func TestChartRefusesWhatWouldNotWork(t *testing.T) {
	for text, why := range map[string]string{
		"{replicas: 2}":                                       "share no limits without a store",
		"{replicas: 0}":                                       "replicas",
		"{admin: {enabled: true}}":                            "auth.existingSecret",
		"{serviceMonitor: {enabled: true}}":                   "admin.enabled",
		"{replica: 1}":                                        "replica",
		"{config: {port: 1}}":                                 "port",
		"{config: {admin-hosts: x}}":                          "admin-hosts",
		"{admin: {hosts: [\"a\\nport 1\"]}}":                  "hosts",
		"{admin: {hosts: [https://a]}}":                       "hosts",
		"{config: {maxmemory: \"1\\nport\"}}":                 "maxmemory",
		"{persistence: {size: much}}":                         "size",
		"{admin: {port: 80}}":                                 "port",
		"{image: {pullPolicy: Sometimes}}":                    "pullPolicy",
		"{http: {port: 6379}}":                                "port",
		"{config: {http-port: 1}}":                            "http-port",
		"{config: {rls-config: x}}":                           "rls-config",
		"{rls: {enabled: true}}":                              "has no limits without rules or limitador",
		"{rules: {files: {.a.yaml: x}}}":                      "propertyName '.a.yaml'",
		"{rules: {files: {a.json: x}}}":                       "propertyName 'a.json'",
		"{rules: {existingConfigMap: a, files: {a.yaml: x}}}": "either files or existingConfigMap",
		"{config: {limitador-limits: x}}":                     "limitador-limits",
		"{limitador: {limits: x, existingConfigMap: a}}":      "either limits or existingConfigMap",
		"{http: {enabled: true}, rls: {port: 8080, enabled: true}, rules: {existingConfigMap: a}}": "rls.port: 8080 is that of http, too",
	} {
		_, err := render(t, text)
		require.ErrorContains(t, err, why, text)
	}
}

// TestChartRunsTheImageAsItIsMade: as its user, on a root that cannot be written to, with the
// configuration of the values, and probes on ports that exist.
func TestChartRunsTheImageAsItIsMade(t *testing.T) {
	objects, err := render(t, "{auth: {existingSecret: s}, admin: {enabled: true}, config: {maxmemory: 1gb, io-threads: 2}}")
	require.NoError(t, err)
	var set *appsv1.StatefulSet
	var conf *corev1.ConfigMap
	for _, o := range objects {
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			set = o
		case *corev1.ConfigMap:
			conf = o
		}
	}
	for _, line := range []string{"maxmemory 1gb\n", "io-threads 2\n", "admin-port 9379\n", "appendonly yes\n"} {
		require.Contains(t, conf.Data["cellserver.conf"], line)
	}
	require.NotContains(t, conf.Data["cellserver.conf"], "protected-mode")
	pod := set.Spec.Template.Spec
	require.EqualValues(t, 65532, *pod.SecurityContext.RunAsUser)
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.Equal(t, "CELLSERVER_REQUIREPASS", c.Env[0].Name)
	named := map[string]bool{}
	for _, p := range c.Ports {
		named[p.Name] = true
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
		require.True(t, named[probe.HTTPGet.Port.StrVal], fmt.Sprint(probe.HTTPGet.Port))
	}
	mounted := map[string]bool{}
	for _, v := range pod.Volumes {
		mounted[v.Name] = true
	}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		mounted[claim.Name] = true
	}
	for _, m := range c.VolumeMounts {
		require.True(t, mounted[m.Name], m.Name)
	}
}

// TestChartOpensPortsForGateways: each port has a name in the pod, the service and the network policy, and the files of
// rules are where the configuration says. A change of the files makes no other pods.
func TestChartOpensPortsForGateways(t *testing.T) {
	pods := map[string]string{}
	for _, text := range []string{"domain: shop", "domain: other"} {
		objects, err := render(t, "{http: {enabled: true}, rls: {enabled: true}, rules: {files: {shop.yaml: \""+text+"\"}}}")
		require.NoError(t, err)
		var conf, files string
		var named, reached, allowed []string
		for _, o := range objects {
			switch o := o.(type) {
			case *appsv1.StatefulSet:
				pod := o.Spec.Template
				pods[pod.Annotations["checksum/config"]] = text
				for _, p := range pod.Spec.Containers[0].Ports {
					named = append(named, fmt.Sprintf("%s %d", p.Name, p.ContainerPort))
				}
				require.Contains(t, pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "rules", MountPath: "/etc/cellserver-rules", ReadOnly: true})
				for _, v := range pod.Spec.Volumes {
					if v.Name == "rules" {
						files = v.ConfigMap.Name
					}
				}
			case *corev1.Service:
				for _, p := range o.Spec.Ports {
					if o.Spec.ClusterIP != "None" {
						reached = append(reached, fmt.Sprintf("%s %d", p.TargetPort.StrVal, p.Port))
					}
				}
			case *networkingv1.NetworkPolicy:
				for _, p := range o.Spec.Ingress[0].Ports {
					allowed = append(allowed, p.Port.StrVal)
				}
			case *corev1.ConfigMap:
				if o.Name == "limits-cellserver-rules" {
					require.Equal(t, map[string]string{"shop.yaml": text}, o.Data)
					continue
				}
				conf = o.Data["cellserver.conf"]
			}
		}
		require.Equal(t, []string{"redis 6379", "http 8080", "grpc-rls 8081"}, named)
		require.Equal(t, named, reached)
		require.Equal(t, []string{"redis", "http", "grpc-rls"}, allowed)
		require.Equal(t, "limits-cellserver-rules", files)
		for _, line := range []string{"http-port 8080\n", "http-bind * -::*\n", "rls-port 8081\n", "rls-bind * -::*\n", "rls-config /etc/cellserver-rules\n"} {
			require.Contains(t, conf, line)
		}
	}
	require.Len(t, pods, 1)
}

// TestChartHasTheLimitsOfLimitador: the text of the values, or a ConfigMap that exists, is where the configuration says.
func TestChartHasTheLimitsOfLimitador(t *testing.T) {
	for text, want := range map[string]string{"limits: \"- {a: b}\"": "limits-cellserver-limits", "existingConfigMap: mine": "mine"} {
		objects, err := render(t, "{rls: {enabled: true}, limitador: {"+text+"}}")
		require.NoError(t, err)
		var name string
		for _, o := range objects {
			switch o := o.(type) {
			case *appsv1.StatefulSet:
				pod := o.Spec.Template.Spec
				require.Contains(t, pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "limits", MountPath: "/etc/cellserver-limits", ReadOnly: true})
				for _, v := range pod.Volumes {
					if v.Name == "limits" {
						name = v.ConfigMap.Name
					}
				}
			case *corev1.ConfigMap:
				if conf := o.Data["cellserver.conf"]; conf != "" {
					require.Contains(t, conf, "limitador-limits /etc/cellserver-limits\n")
					continue
				}
				require.Equal(t, map[string]string{"limits.yaml": "- {a: b}"}, o.Data)
			}
		}
		require.Equal(t, want, name)
	}
}

// TestChartKnowsTheNamesOfItsServices: the admin port may be asked for by every name of the
// service that leads to it, and by those that an operator gives to an ingress.
func TestChartKnowsTheNamesOfItsServices(t *testing.T) {
	objects, err := render(t, "{auth: {existingSecret: s}, admin: {enabled: true, hosts: [limits.example.org, other]}}")
	require.NoError(t, err)
	var conf, service string
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			conf = o.Data["cellserver.conf"]
		case *corev1.Service:
			for _, p := range o.Spec.Ports {
				if p.Name == "admin" {
					service = o.Name
				}
			}
		}
	}
	require.NotEmpty(t, service)
	s := service + ".prod"
	require.Contains(t, conf, "\nadmin-hosts "+strings.Join([]string{service, s, s + ".svc", s + ".svc.cluster.local", "limits.example.org", "other"}, " ")+"\n")
}

// TestChartHasTheRules: what an operator of Prometheus gets is the file that promtool tests.
func TestChartHasTheRules(t *testing.T) {
	ours, err := os.ReadFile("../../deploy/prometheus/cellserver.rules.yml")
	require.NoError(t, err)
	chart, err := os.ReadFile(chartDir + "/files/cellserver.rules.yml")
	require.NoError(t, err)
	require.Equal(t, string(ours), string(chart), "copy deploy/prometheus/cellserver.rules.yml to deploy/helm/cellserver/files")
}

// valuesOfPage are the values that the page for Kubernetes shows.
var valuesOfPage = regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n")

// TestValuesOfThePageAreGood renders the chart with each of them.
func TestValuesOfThePageAreGood(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations/kubernetes.md")
	require.NoError(t, err)
	shown := valuesOfPage.FindAllStringSubmatch(string(page), -1)
	require.Len(t, shown, 2)
	for _, v := range shown {
		objects, err := render(t, v[1])
		require.NoError(t, err, v[1])
		require.NotEmpty(t, objects)
	}
}

// TestChartServesTheEnvoyBesideIt renders the chart with the values of the example, named as the configuration of Envoy names it.
// The objects of Envoy are ones that Kubernetes knows, the network policy lets them in, and user and rules are those of the compose file.
func TestChartServesTheEnvoyBesideIt(t *testing.T) {
	text, err := os.ReadFile(envoyDir + "/values.yaml")
	require.NoError(t, err)
	manifest, err := os.ReadFile(envoyDir + "/envoy.yaml")
	require.NoError(t, err)
	configuration, err := os.ReadFile("../../deploy/compose/envoy.yaml")
	require.NoError(t, err)
	rules, err := os.ReadFile("../../deploy/compose/rules/example.yaml")
	require.NoError(t, err)
	composed, err := compose("CELLSERVER_PASSWORD=a", "GRAFANA_PASSWORD=b")
	require.NoError(t, err)
	_, user, found := strings.Cut(strings.Join(composed.Services["cellserver"].Command, " "), " --user ")
	require.True(t, found)

	labels := map[string]string{}
	for _, o := range decode(t, "envoy.yaml", string(manifest)) {
		if d, is := o.(*appsv1.Deployment); is {
			labels = d.Spec.Template.Labels
			require.Equal(t, d.Spec.Selector.MatchLabels, labels)
		}
	}
	objects, err := renderAs(t, "cellserver", string(text))
	require.NoError(t, err)
	var names, services []string
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			names = append(names, o.Name)
			if files, is := o.Data["example.yaml"]; is {
				want, got := map[string]any{}, map[string]any{}
				require.NoError(t, sigsyaml.Unmarshal(rules, &want))
				require.NoError(t, sigsyaml.Unmarshal([]byte(files), &got))
				require.Equal(t, want, got)
				continue
			}
			require.Contains(t, o.Data["cellserver.conf"], "\nrls-user envoy\n")
			require.Contains(t, o.Data["cellserver.conf"], "\nuser "+user+"\n")
		case *networkingv1.NetworkPolicy:
			require.Equal(t, labels, o.Spec.Ingress[0].From[0].PodSelector.MatchLabels)
		case *corev1.Service:
			for _, p := range o.Spec.Ports {
				services = append(services, fmt.Sprintf("{address: %s, port_value: %d}", o.Name, p.Port))
			}
		}
	}
	require.ElementsMatch(t, []string{"cellserver", "cellserver-rules"}, names)
	require.True(t, slices.ContainsFunc(services, func(s string) bool { return strings.Contains(string(configuration), s) }), "Envoy asks for none of %q", services)
}
