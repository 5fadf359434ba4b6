package demo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Envoy returns the path of Envoy: the program that make setup has installed below root, the folder
// of this module, or else the one that is on the path of programs. It returns an error if there is none.
func Envoy(root string) (string, error) {
	path, err := filepath.Abs(filepath.Join(root, "compat_test", "libraries", "envoy", ".venv", "bin", "envoy"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if path, err = exec.LookPath("envoy"); err != nil {
		return "", errors.New("no envoy: make setup installs it")
	}
	return path, nil
}

// EnvoyConfig returns the configuration of Envoy in the file at path, with other ports. ports has the new
// ports by those in the file. It returns an error if the file cannot be read or does not have one of them.
func EnvoyConfig(path string, ports map[string]string) (string, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text := string(file)
	for from, to := range ports {
		if !strings.Contains(text, "port_value: "+from+"}") {
			return "", fmt.Errorf("%s has no port %s", path, from)
		}
		text = strings.ReplaceAll(text, "port_value: "+from+"}", "port_value: @"+to+"}")
	}
	return strings.ReplaceAll(text, "port_value: @", "port_value: "), nil
}

// EnvoyArguments returns the arguments with which Envoy runs beside others on a machine, with the
// configuration in the given file.
func EnvoyArguments(file string) []string {
	return []string{"--config-path", file, "--use-dynamic-base-id", "--disable-hot-restart", "--concurrency", "2", "--log-level", "warning"}
}
