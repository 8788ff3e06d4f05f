package doctor

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestProgram(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	dirty := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, tc := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"a release", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{commit}}, "v1.2.3"},
		{"a build of a commit", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{commit}}, "devel-0123456789ab"},
		{"a build with changes", debug.BuildInfo{Settings: []debug.BuildSetting{commit, dirty}}, "devel-0123456789ab+dirty"},
		{"a build outside version control", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "devel"},
	} {
		if got := programOf(&tc.info); got.Version != tc.want || got.Go == "" || !strings.Contains(got.Platform, "/") {
			t.Errorf("%s: got %+v, want %s", tc.name, got, tc.want)
		}
	}
	if Version() == "" {
		t.Error("no version")
	}
}

func TestPrintable(t *testing.T) {
	if got := printable("a\x1b[31mb\n漢\r\u009b"); got != "a?[31mb\n漢??" {
		t.Errorf("got %q", got)
	}
}
