//go:build real && unix

package deploy_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cellserver/cellserver/internal/freeport"
)

// user is the unprivileged id of the server's user in the image.
const user = 65532

// builder is buildah with a store of its own. It needs no daemon.
type builder struct {
	t    *testing.T
	args []string
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	needs(t, "buildah", "make")
	if os.Getuid() != 0 {
		t.Skip("SKIP: images are built and started by root here")
	}
	t.Setenv("BUILDAH_ISOLATION", "chroot")
	dir := t.TempDir()
	return &builder{t, []string{"--storage-driver=vfs", "--root", filepath.Join(dir, "store"), "--runroot", filepath.Join(dir, "run")}}
}

// do runs buildah and returns what it prints last.
func (b *builder) do(dir string, args ...string) string {
	b.t.Helper()
	said := strings.TrimSpace(must(b.t, dir, "buildah", append(b.args, args...)...))
	return said[strings.LastIndexByte(said, '\n')+1:]
}

// image is what the image tells the programs that start it.
type image struct {
	Config struct {
		User, WorkingDir string
		Entrypoint, Cmd  []string
		Volumes          map[string]any
		ExposedPorts     map[string]any
		Healthcheck      struct{ Test []string }
	} `json:"config"`
}

// built builds the image from the program that is compiled here.
func (b *builder) built() (root string, i image) {
	b.t.Helper()
	return b.build(b.context())
}

// context returns a folder with what the image is built of.
func (b *builder) context() (dir string) {
	b.t.Helper()
	dir = b.t.TempDir()
	for _, name := range []string{"Dockerfile", ".dockerignore"} {
		content, err := os.ReadFile(filepath.Join("..", name))
		require.NoError(b.t, err)
		require.NoError(b.t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	require.NoError(b.t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	require.NoError(b.t, os.CopyFS(filepath.Join(dir, "bin", "image"), os.DirFS(imageFiles(b.t))))
	return dir
}

// build builds an image from the context dir with further arguments, and mounts its root.
func (b *builder) build(dir string, args ...string) (root string, i image) {
	b.t.Helper()
	b.do(dir, slices.Concat([]string{"build", "--format=docker", "--pull=never", "--build-arg=SOURCE=compiled", "--tag=cellserver"}, args, []string{"."})...)
	text := must(b.t, ".", "buildah", append(b.args, "inspect", "--type=image", "--format={{.Config}}", "cellserver")...)
	require.NoError(b.t, json.Unmarshal([]byte(text), &i))
	container := b.do(".", "from", "--pull=never", "cellserver")
	root = b.do(".", "mount", container)
	b.t.Cleanup(func() { b.do(".", "rm", container) })
	return root, i
}

// within is a command in the root of the image, as its user.
func (i *image) within(root string, args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = i.Config.WorkingDir
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: user, Gid: user}}
	return cmd
}

// TestImageHasNothingButTheServer: the image has no shell, no library, and no user that could
// write to anything but the state.
func TestImageHasNothingButTheServer(t *testing.T) {
	root, i := newBuilder(t).built()
	var names []string
	size := int64(0)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		require.NoError(t, err)
		size += info.Size()
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		names = append(names, name)
		return nil
	}))
	require.Equal(t, []string{"cellserver", "data/.keep", "etc/ssl/certs/ca-certificates.crt"}, names)
	require.Less(t, size, int64(28<<20))
	require.Equal(t, "65532:65532", i.Config.User)
	require.Equal(t, "/data", i.Config.WorkingDir)
	require.Contains(t, i.Config.Volumes, "/data")
	require.Contains(t, i.Config.ExposedPorts, "6379/tcp")
	require.Equal(t, []string{"CMD", "/cellserver", "ping"}, i.Config.Healthcheck.Test)
}

// TestImageStartsAsItsUserInAnEmptyRoot: with its own command line; it keeps state in the volume,
// and is found healthy only while it runs.
func TestImageStartsAsItsUserInAnEmptyRoot(t *testing.T) {
	root, i := newBuilder(t).built()
	command := append(append(i.Config.Entrypoint, i.Config.Cmd...), "--appendonly=yes")
	said, err := i.within(root, command...).CombinedOutput()
	require.Error(t, err, "anybody could use it")
	require.Contains(t, string(said), "set requirepass")
	for _, remaining := range []string{":1", ":0"} { // the second server knows what the first one did
		s := startOnPort(t, i.within(root, command...), "secret")
		require.Equal(t, remaining, fifth(t, s))
		healthy := i.within(root, i.Config.Healthcheck.Test[1:]...)
		healthy.Env = []string{"CELLSERVER_PORT=" + s.port, "CELLSERVER_REQUIREPASS=secret"}
		said, err := healthy.CombinedOutput()
		require.NoError(t, err, "%s", said)
		s.stop(t)
		sick := i.within(root, i.Config.Healthcheck.Test[1:]...)
		sick.Env = healthy.Env
		require.Error(t, sick.Run())
	}
	require.DirExists(t, filepath.Join(root, "data", "appendonlydir"))
}

// TestImageOfRatelimitStarts: the target ratelimit has both programs and the certificates, and serves the files of rules in a volume.
func TestImageOfRatelimitStarts(t *testing.T) {
	b := newBuilder(t)
	dir := b.context()
	must(t, "..", "make", "ratelimit-files", "IMAGE="+filepath.Join(dir, "bin", "image"))
	root, i := b.build(dir, "--target=ratelimit")
	require.Equal(t, "65534:65534", i.Config.User)
	require.Equal(t, []string{"/bin/ratelimit"}, i.Config.Entrypoint)
	require.FileExists(t, filepath.Join(root, "etc", "ssl", "certs", "ca-certificates.crt"), "for a control plane")

	rules := filepath.Join(root, "data", "config")
	require.NoError(t, os.MkdirAll(rules, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(rules, "shop.yaml"), []byte("domain: shop\n"), 0o644))
	i.Config.WorkingDir = "/"
	cmd, web := i.within(root, i.Config.Entrypoint...), freeport.Choose()
	cmd.Env = []string{"PATH=/bin", "RUNTIME_ROOT=/data", "HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "PORT=" + web, "GRPC_PORT=" + freeport.Choose()}
	var said strings.Builder // read when the program has ended
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill() //nolint:errcheck // it may have ended
	require.Eventually(t, func() bool { return body("http://127.0.0.1:"+web+"/healthcheck") == "OK" }, patience, 5*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "%s", &said)
}

// TestDockerfileCompiles runs the stage that compiles, in an image that has the programs and
// folders of this machine instead of those of golang.
func TestDockerfileCompiles(t *testing.T) {
	b := newBuilder(t)
	base := b.do(".", "from", "scratch")
	b.do(".", "config", "--env=PATH="+os.Getenv("PATH"), "--env=HOME=/root", "--env=GOFLAGS=-buildvcs=false", base)
	b.do(".", "commit", "--quiet", base, "localhost/golang:1.26")
	args := []string{"build", "--format=docker", "--pull=never", "--build-arg=SOURCE=compile", "--tag=cellserver", "--volume=" + t.TempDir() + ":/tmp"}
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc/ssl"} {
		if _, err := os.Stat(dir); err == nil {
			args = append(args, "--volume="+dir+":"+dir+":ro")
		}
	}
	for name, to := range map[string]string{"GOMODCACHE": "/root/go/pkg/mod", "GOCACHE": "/root/.cache/go-build", "GOROOT": ""} {
		from := strings.TrimSpace(must(t, ".", "go", "env", name))
		if to == "" && !strings.HasPrefix(from, "/usr/") {
			to = from
		}
		if to != "" {
			args = append(args, "--volume="+from+":"+to)
		}
	}
	b.do("..", append(args, ".")...)
	container := b.do(".", "from", "--pull=never", "cellserver")
	t.Cleanup(func() { b.do(".", "rm", container) })
	require.FileExists(t, filepath.Join(b.do(".", "mount", container), "cellserver"))
}

// fifth returns what may still pass of a limit of two, after a call.
func fifth(t *testing.T, s *running) string {
	t.Helper()
	reply, err := s.askAll("CL.THROTTLE k 1 1 3600", 6)
	require.NoError(t, err)
	return reply[3]
}
