package manifests_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

const composeFile = "../../deploy/compose/compose.yaml"

// compose reads the file as docker compose does with the profile envoy.
func compose(environment ...string) (*types.Project, error) {
	o, err := cli.NewProjectOptions([]string{composeFile}, cli.WithEnv(environment), cli.WithProfiles([]string{"envoy"}), cli.WithInterpolation(true), cli.WithConsistency(true))
	if err != nil {
		return nil, err
	}
	return o.LoadProject(context.Background())
}

// TestComposeFileIsValid: against the schema of Compose, with everything that it mounts from
// here.
func TestComposeFileIsValid(t *testing.T) {
	p, err := compose("CELLSERVER_PASSWORD=a", "GRAFANA_PASSWORD=b")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"cellserver", "envoy", "prometheus", "grafana"}, p.ServiceNames())
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				require.True(t, v.ReadOnly, "%s: %s", name, v.Source)
				_, err := os.Stat(v.Source)
				require.NoError(t, err, name)
			}
		}
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, "%s: port %s is open to other machines", name, port.Published)
		}
	}
	server := p.Services["cellserver"]
	require.Equal(t, "a", *server.Environment["CELLSERVER_REQUIREPASS"])
	require.Equal(t, "cellserver", *server.Environment["CELLSERVER_ADMIN_HOSTS"], "Prometheus asks by the name of the service")
	for _, port := range []string{"ADMIN", "HTTP", "RLS"} {
		require.Contains(t, published(server), *server.Environment["CELLSERVER_"+port+"_PORT"])
	}
	require.Equal(t, []string{"envoy"}, p.Services["envoy"].Profiles)
	require.FileExists(t, filepath.Join(server.Build.Context, "Dockerfile"))
}

// published returns the ports of a service that the machine has.
func published(s types.ServiceConfig) (ports []string) {
	for _, p := range s.Ports {
		ports = append(ports, p.Published)
	}
	return ports
}

// TestComposeWantsPasswords: nothing starts with a password that everybody can read here.
func TestComposeWantsPasswords(t *testing.T) {
	_, err := compose("GRAFANA_PASSWORD=b")
	require.ErrorContains(t, err, "a password for the clients of cellserver")
	_, err = compose("CELLSERVER_PASSWORD=a")
	require.ErrorContains(t, err, "GRAFANA_PASSWORD")
}
